// Sums the quotes of sources. A process that sums keeps others from opening the source, waits for the writers of open tokens, and sets a new epoch before the sum begins.
// If the sum still misses quotes of a writer, that writer finds the epoch when it checks, and recounts.
import type { SourceDocument, StoreRequest, WriterToken } from '../documents.ts'
import { sourceIdOf } from '../ids.ts'
import type { GuardedWrite, QuoteTotals, StoreCommands } from '../mongodb/commands.ts'
import { asStoreAway } from '../mongodb/store-errors.ts'
import { type IsExcluded, type IsToken, isStale, tokensAfterSum, type Watermarks } from './tokens.ts'
import { type WriteDeps, writeGuarded } from './write-threads.ts'

export interface RecountDeps extends WriteDeps {
  watermarks: Watermarks
  isExcluded: IsExcluded
}

/** One sum must not take too long, whatever the number of sources. */
export const SOURCES_AT_ONCE = 100
/** A refused recount is tried again after a random time of at most this many ms. */
const BACK_OFF_MS = 50
/** A reservation is renewed at this pause, because after a second without it does not block others any more. */
const RENEW_MS = 250
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

/** Returns the sources whose recount was refused. */
async function recountOnce(
  deps: RecountDeps,
  ids: readonly string[],
  writer: string,
  isRemovable: IsToken,
): Promise<string[]> {
  const { commands, runtime, isExcluded } = deps
  const token = { request: '', writer, batch: 1, since: new Date(runtime.now()), excludes: runtime.newId() }
  const isOwn = (one: WriterToken) => one.writer === writer || isRemovable(one)
  const found = await commands.find('sources', ids)
  const free = found.filter((source) => !isExcluded(source, isOwn))
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
  const held = { sources: reserved.filter(({ _id }) => !refusedReservations.has(_id)) }
  const written = await whileReserved(deps, held, isOwn, async () => {
    held.sources = await prepareSum(deps, held.sources, isOwn)
    return writeTotals(deps, held.sources, isOwn)
  })
  return found.map(({ _id }) => _id).filter((id) => !written.has(id))
}

/** Sums the quotes of these sources and writes the totals. Returns the ids of the sources that were not refused. */
async function writeTotals(
  { commands, runtime }: RecountDeps,
  sources: readonly SourceDocument[],
  isOwn: IsToken,
): Promise<Set<string>> {
  const ids = sources.map(({ _id }) => _id)
  const sums = await sumQuotes(commands, ids)
  const version = runtime.newId()
  const writes = sources.map(({ _id, meta }): GuardedWrite => {
    const tokens = tokensAfterSum(runtime, meta.tokens ?? [], isOwn)
    const set = { ...sums.get(_id), 'meta.version': version }
    const update =
      tokens.length === 0 ? { $set: set, $unset: { 'meta.tokens': '' } } : { $set: { ...set, 'meta.tokens': tokens } }
    return { id: _id, read: meta.version, update }
  })
  const refused = await writeGuarded(commands, 'sources', writes, version)
  return new Set(ids.filter((id) => !refused.has(id)))
}

/**
 * Waits for the quotes of the open tokens in these reserved sources, and sets a new epoch.
 *
 * @returns the sources as they are stored, without the refused ones. A sum may begin now.
 */
export async function prepareSum(
  deps: RecountDeps,
  reserved: readonly SourceDocument[],
  isOwn: IsToken,
): Promise<SourceDocument[]> {
  const { commands, runtime, watermarks } = deps
  await awaitWriters(
    deps,
    reserved.flatMap(({ meta: { tokens = [] } }) => tokens.filter((token) => !isOwn(token))),
  )
  const epoch = runtime.newId()
  const marks = reserved.map(({ _id, meta }): GuardedWrite => {
    return { id: _id, read: meta.version, update: { $set: { 'meta.version': epoch, 'meta.epoch': epoch } } }
  })
  const refused = await writeGuarded(commands, 'sources', marks, epoch)
  return reserved
    .filter(({ _id }) => !refused.has(_id))
    .map((source) => watermarks.withoutSettledTokens({ ...source, meta: { ...source.meta, version: epoch, epoch } }))
}

/** Waits until no young token is above its writer's watermark, at most for `MAX_WAIT_MS`. Serves progress alone: fewer writers must recount. */
async function awaitWriters({ runtime, watermarks }: RecountDeps, tokens: readonly WriterToken[]): Promise<void> {
  const began = runtime.monotonic()
  for (;;) {
    await watermarks.read(tokens)
    const isWorthWaiting = tokens.some((token) => !watermarks.covers(token) && !isStale(runtime, token))
    if (!isWorthWaiting || runtime.monotonic() - began > MAX_WAIT_MS) return
    await runtime.delay(POLL_MS)
  }
}

/**
 * Does this work while these sources are reserved, and renews the reservations, so that other processes keep away.
 *
 * @param reserved the sources as they are stored; the work replaces them when it writes them.
 */
export async function whileReserved<Result>(
  { commands, runtime }: WriteDeps,
  reserved: { sources: readonly SourceDocument[] },
  isOwn: IsToken,
  work: () => Promise<Result>,
): Promise<Result> {
  let isDone = false
  async function renew(): Promise<void> {
    for (;;) {
      await runtime.delay(RENEW_MS)
      if (isDone) return
      const excludes = runtime.newId()
      const statements = reserved.sources.map(({ _id, meta: { version, tokens = [] } }) => {
        const renewed = tokens.map((token) => (isOwn(token) && token.excludes ? { ...token, excludes } : token))
        // The version stays: nothing that a guard protects has changed.
        return { q: { _id, 'meta.version': version }, u: { $set: { 'meta.tokens': renewed } } }
      })
      if (statements.length > 0) await commands.update('sources', statements)
    }
  }
  // A failure ends the renewals. Then others open the sources, and the commit is refused.
  void renew().catch(() => {})
  try {
    return await work()
  } finally {
    isDone = true
  }
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
