// Sums the quotes of sources. A process that sums keeps others from opening the source, waits for the writers of open tokens, asks those that are not done to look,
// and sets a new epoch before the sum begins. If the sum still misses quotes of a writer, that writer finds the epoch when it looks, and recounts.
import type { ObjectId } from 'mongodb'
import type { QuoteTotals, Runtime, StoreCommands } from './commands.ts'
import type { SourceDocument, WriterToken } from './documents.ts'
import { type GuardedWrite, writeGuarded } from './mongodb.ts'
import { type IsToken, isExcluded, isExpired, isStale, tokensAfterSum } from './tokens.ts'
import type { Watermarks } from './watermarks.ts'

export interface RecountDeps {
  commands: StoreCommands
  runtime: Runtime
  watermarks: Watermarks
}

/** One sum must not take too long, however many sources there are. */
const SOURCES_AT_ONCE = 100
/** A refused recount is tried again after a random time of at most this many ms. */
const BACK_OFF_MS = 50
/** How long to wait for the writers of open tokens at most, and how often to read their watermarks, in ms. */
const DRAIN_MS = 1_000
const ASK_MS = 10

/**
 * Sums the quotes of these sources and writes the totals, until no write is refused.
 *
 * @param isDone selects the tokens to take off: all quotes of such a token are written.
 */
export async function recount(deps: RecountDeps, ids: readonly string[], isDone: IsToken): Promise<void> {
  const { runtime } = deps
  const writer = runtime.newId().toHexString()
  for (let start = 0; start < ids.length; start += SOURCES_AT_ONCE) {
    let left: readonly string[] = ids.slice(start, start + SOURCES_AT_ONCE)
    while (left.length > 0) {
      const refused = await recountOnce(deps, left, writer, isDone)
      if (refused.length > 0) await runtime.delay(runtime.random() * BACK_OFF_MS)
      left = refused
    }
  }
}

/** Returns the sources whose recount was refused. */
async function recountOnce(
  deps: RecountDeps,
  ids: readonly string[],
  writer: string,
  isDone: IsToken,
): Promise<string[]> {
  const { commands, runtime } = deps
  const token = { request: '', writer, batch: 1, since: new Date(runtime.now()), excludes: true as const }
  const isOwn = (one: WriterToken) => one.writer === writer || isDone(one)
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
  const unreserved = await writeGuarded(commands, 'sources', reservations, version)
  const marked = await beginSum(
    deps,
    reserved.filter(({ _id }) => !unreserved.has(_id)),
    isOwn,
  )
  const sums = await sumQuotes(
    commands,
    marked.map(({ _id }) => _id),
  )
  const summed = runtime.newId()
  const writes = marked.map((source): GuardedWrite => {
    const tokens = tokensAfterSum(runtime, source.meta.tokens ?? [], isOwn)
    const set = { ...sums.get(source._id), 'meta.version': summed }
    const update =
      tokens.length === 0 ? { $set: set, $unset: { 'meta.tokens': '' } } : { $set: { ...set, 'meta.tokens': tokens } }
    return { id: source._id, read: source.meta.version, update }
  })
  const refused = await writeGuarded(commands, 'sources', writes, summed)
  const written = new Set(marked.map(({ _id }) => _id).filter((id) => !refused.has(id)))
  return found.map(({ _id }) => _id).filter((id) => !written.has(id))
}

/**
 * Waits for the quotes of the open tokens in these reserved sources, asks the writers that are not done to look, and sets a new epoch.
 *
 * @returns the sources as they are stored, without the refused ones. A sum may begin now.
 */
export async function beginSum(
  { commands, runtime, watermarks }: RecountDeps,
  reserved: readonly SourceDocument[],
  isOwn: IsToken,
): Promise<SourceDocument[]> {
  // The writer of an expired token may still be alive, so it must look too.
  const isOther = (token: WriterToken) => !isOwn(token) || isExpired(runtime, token)
  const others = reserved.flatMap(({ meta: { tokens = [] } }) => tokens.filter(isOther))
  const open = await drain({ commands, runtime, watermarks }, others)
  const epoch = runtime.newId()
  await askToLook(commands, open, epoch)
  const marks = reserved.map(({ _id, meta }): GuardedWrite => {
    return { id: _id, read: meta.version, update: { $set: { 'meta.version': epoch, 'meta.epoch': epoch } } }
  })
  const refused = await writeGuarded(commands, 'sources', marks, epoch)
  return reserved
    .filter(({ _id }) => !refused.has(_id))
    .map((source) => watermarks.withOpenTokens({ ...source, meta: { ...source.meta, version: epoch, epoch } }))
}

/** Waits until no young token is above its writer's watermark, at most for `DRAIN_MS`, and returns the open tokens. */
async function drain({ runtime, watermarks }: RecountDeps, tokens: readonly WriterToken[]): Promise<WriterToken[]> {
  const began = runtime.monotonic()
  for (;;) {
    await watermarks.learn(tokens)
    const open = tokens.filter((token) => !watermarks.covers(token))
    const isWorthWaiting = open.some((token) => !isStale(runtime, token))
    if (!isWorthWaiting || runtime.monotonic() - began > DRAIN_MS) return open
    await runtime.delay(ASK_MS)
  }
}

/** Makes the writers of these tokens look at the epochs of their sources before they raise their watermarks. */
async function askToLook(commands: StoreCommands, tokens: readonly WriterToken[], asked: ObjectId): Promise<void> {
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
