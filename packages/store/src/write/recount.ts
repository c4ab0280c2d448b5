// Sums the quotes of sources. A process that sums keeps others from opening the source, waits for the writers of open tokens, asks those that are not done to check
// epochs, and sets a new epoch before the sum begins. If the sum still misses quotes of a writer, that writer finds the epoch when it checks, and recounts.
import type { ObjectId } from 'mongodb'
import type { SourceDocument, StoreRequest, WriterToken } from '../documents.ts'
import { sourceIdOf } from '../ids.ts'
import type { GuardedWrite, QuoteTotals, StoreCommands } from '../mongodb/commands.ts'
import { findByIds } from '../mongodb/mongo-reads.ts'
import { asStoreAway } from '../mongodb/store-errors.ts'
import type { Watermarks } from './tokens.ts'
import { type IsToken, isExcluded, isExpired, isStale, tokensAfterSum } from './tokens.ts'
import { type WriteDeps, writeGuarded } from './write-threads.ts'

export interface RecountDeps extends WriteDeps {
  watermarks: Watermarks
}

/** One sum must not take too long, whatever the number of sources. */
export const SOURCES_AT_ONCE = 100
/** A refused recount is tried again after a random time of at most this many ms. */
const BACK_OFF_MS = 50
/** The longest wait for the writers of open tokens, and the pause between two reads of their watermarks, in ms. */
const MAX_WAIT_MS = 1_000
const POLL_MS = 10

/**
 * Sums the quotes of these sources and writes the totals, until no write is refused.
 *
 * @param isRemovable selects the tokens to remove: all quotes of such a token are written.
 */
export async function recount(deps: RecountDeps, ids: readonly string[], isRemovable: IsToken): Promise<void> {
  const { runtime } = deps
  const writer = runtime.newId().toHexString()
  for (let start = 0; start < ids.length; start += SOURCES_AT_ONCE) {
    let left: readonly string[] = ids.slice(start, start + SOURCES_AT_ONCE)
    while (left.length > 0) {
      const refused = await recountOnce(deps, left, writer, isRemovable)
      if (refused.length > 0) await runtime.delay(runtime.random() * BACK_OFF_MS)
      left = refused
    }
  }
}

/**
 * Brings the sources of requests that failed for good into agreement with their quotes.
 *
 * @throws {StoreAwayError}
 */
export async function reconcile(deps: RecountDeps, requests: readonly StoreRequest[]): Promise<void> {
  const ids = new Set(requests.map(({ tenant, thread }) => sourceIdOf(tenant, thread.source)))
  // A late command of the failed request may still take effect: its tokens stay.
  const isRemovable = () => false
  await recount(deps, [...ids], isRemovable).catch((error) => Promise.reject(asStoreAway(error)))
}

/** A source to whose totals a batch added its quotes before it wrote them. */
export interface OpenedSource {
  id: string
  /** Its epoch when it was opened. */
  epoch: ObjectId | undefined
}

/** The batches of one writer. */
export interface WriterBatches {
  name: string
  /** The sources of each ended batch that the watermark does not cover yet. */
  opened: Map<number, readonly OpenedSource[]>
}

/** Recounts the sources of the writer's batches that were summed since they were opened. This removes the tokens of the batches from them. */
export async function recountMissed(deps: RecountDeps, { name, opened }: WriterBatches, upTo: number): Promise<void> {
  const batches = [...opened].filter(([batch]) => batch <= upTo)
  const missed = await findMissed(
    deps.commands,
    batches.flatMap(([, sources]) => sources),
  )
  if (missed.size === 0) return
  await recount(deps, [...missed], ({ writer, batch }) => writer === name && batch <= upTo)
  for (const [batch, sources] of batches)
    opened.set(
      batch,
      sources.filter(({ id }) => !missed.has(id)),
    )
}

/** The sources that were summed since they were opened: the sum may have missed quotes. */
async function findMissed(commands: StoreCommands, opened: readonly OpenedSource[]): Promise<Set<string>> {
  const ids = [...new Set(opened.map(({ id }) => id))]
  const found = await findByIds(ids, (some) => commands.findVersions('sources', some))
  const epochs = new Map(found.map(({ _id, meta }) => [_id, meta.epoch]))
  const missed = opened.filter(({ id, epoch }) => epochs.has(id) && String(epochs.get(id)) !== String(epoch))
  return new Set(missed.map(({ id }) => id))
}

/** Returns the sources whose recount was refused. */
async function recountOnce(
  deps: RecountDeps,
  ids: readonly string[],
  writer: string,
  isRemovable: IsToken,
): Promise<string[]> {
  const { commands, runtime } = deps
  const token = { request: '', writer, batch: 1, since: new Date(runtime.now()), excludes: true as const }
  const isOwn = (one: WriterToken) => one.writer === writer || isRemovable(one)
  const found = await commands.find('sources', ids)
  const free = found.filter((source) => !isExcluded(runtime, source, isOwn))
  const version = runtime.newId()
  const reserved = free.map((source): SourceDocument => {
    const { digest: _, ...meta } = source.meta
    const others = (meta.tokens ?? []).filter((one) => one.writer !== writer)
    return { ...source, meta: { ...meta, version, tokens: [...others, token] } }
  })
  const reservations = reserved.map(({ _id, meta: { tokens } }, at): GuardedWrite => {
    const update = { $set: { 'meta.version': version, 'meta.tokens': tokens }, $unset: { 'meta.digest': '' } }
    return { id: _id, read: free[at]?.meta.version ?? version, update }
  })
  const refusedReservations = await writeGuarded(commands, 'sources', reservations, version)
  const withEpoch = await prepareSum(
    deps,
    reserved.filter(({ _id }) => !refusedReservations.has(_id)),
    isOwn,
  )
  const sums = await sumQuotes(
    commands,
    withEpoch.map(({ _id }) => _id),
  )
  const totalsVersion = runtime.newId()
  const writes = withEpoch.map((source): GuardedWrite => {
    const tokens = tokensAfterSum(runtime, source.meta.tokens ?? [], isOwn)
    const set = { ...sums.get(source._id), 'meta.version': totalsVersion }
    const update =
      tokens.length === 0 ? { $set: set, $unset: { 'meta.tokens': '' } } : { $set: { ...set, 'meta.tokens': tokens } }
    return { id: source._id, read: source.meta.version, update }
  })
  const refused = await writeGuarded(commands, 'sources', writes, totalsVersion)
  const written = new Set(withEpoch.map(({ _id }) => _id).filter((id) => !refused.has(id)))
  return found.map(({ _id }) => _id).filter((id) => !written.has(id))
}

/**
 * Waits for the quotes of the open tokens in these reserved sources, asks the writers that are not done to check epochs, and sets a new epoch.
 *
 * @returns the sources as they are stored, without the refused ones. A sum may begin now.
 */
export async function prepareSum(
  { commands, runtime, watermarks }: RecountDeps,
  reserved: readonly SourceDocument[],
  isOwn: IsToken,
): Promise<SourceDocument[]> {
  // The writer of an expired token may still be alive, so it must check too.
  const isOther = (token: WriterToken) => !isOwn(token) || isExpired(runtime, token)
  const others = reserved.flatMap(({ meta: { tokens = [] } }) => tokens.filter(isOther))
  const open = await awaitWriters({ commands, runtime, watermarks }, others)
  const epoch = runtime.newId()
  await askToCheck(commands, open, epoch)
  const marks = reserved.map(({ _id, meta }): GuardedWrite => {
    return { id: _id, read: meta.version, update: { $set: { 'meta.version': epoch, 'meta.epoch': epoch } } }
  })
  const refused = await writeGuarded(commands, 'sources', marks, epoch)
  return reserved
    .filter(({ _id }) => !refused.has(_id))
    .map((source) => watermarks.withoutSettledTokens({ ...source, meta: { ...source.meta, version: epoch, epoch } }))
}

/** Waits until no young token is above its writer's watermark, at most for `MAX_WAIT_MS`, and returns the open tokens. */
async function awaitWriters(
  { runtime, watermarks }: RecountDeps,
  tokens: readonly WriterToken[],
): Promise<WriterToken[]> {
  const began = runtime.monotonic()
  for (;;) {
    await watermarks.read(tokens)
    const open = tokens.filter((token) => !watermarks.covers(token))
    const isWorthWaiting = open.some((token) => !isStale(runtime, token))
    if (!isWorthWaiting || runtime.monotonic() - began > MAX_WAIT_MS) return open
    await runtime.delay(POLL_MS)
  }
}

/** Makes the writers of these tokens check the epochs of their sources before they raise their watermarks. */
async function askToCheck(commands: StoreCommands, tokens: readonly WriterToken[], asked: ObjectId): Promise<void> {
  const names = [...new Set(tokens.map(({ writer }) => writer))]
  if (names.length > 0)
    await commands.update(
      'writers',
      names.map((_id) => ({ q: { _id }, u: { $set: { asked } } })),
    )
}

/** Returns the sums of the stored quotes of each of these sources. */
export async function sumQuotes(
  commands: Pick<StoreCommands, 'sumQuotes'>,
  ids: readonly string[],
): Promise<Map<string, QuoteTotals>> {
  const totals = new Map<string, QuoteTotals>(ids.map((id) => [id, { wordCount: 0, quoteCount: 0 }]))
  if (ids.length === 0) return totals
  for (const { _id, wordCount, quoteCount } of await commands.sumQuotes(ids)) totals.set(_id, { wordCount, quoteCount })
  return totals
}
