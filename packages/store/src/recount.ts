import type { QuoteTotals, Runtime, StoreCommands } from './commands.ts'
import type { SourceDocument, WriterToken } from './documents.ts'
import { type GuardedWrite, writeGuarded } from './mongodb.ts'
import { type IsToken, isExcluded, isStale, tokensAfterSum } from './tokens.ts'
import type { Watermarks } from './watermarks.ts'

// Sums the quotes of sources. Whoever sums keeps others from opening the source, waits for those that have opened it, and sets a new epoch before the sum begins:
// a process whose quotes the sum missed all the same finds the epoch when it settles, and sums in its turn.

export interface RecountDeps {
  commands: StoreCommands
  runtime: Runtime
  watermarks: Watermarks
}

/** One sum must not take too long, however many sources there are. */
const SOURCES_AT_ONCE = 100
/** A refused recount is tried again after a random time of at most this many ms. */
const BACK_OFF_MS = 50
/** The writers of open tokens are waited for at most so long, in ms, and asked every so many. */
const DRAIN_MS = 1_000
const ASK_MS = 10

/**
 * Sums the quotes of these sources and writes the totals, until no write is refused.
 *
 * @param isDone tells the tokens to take off: all quotes of such a token are written.
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
    const others = (meta.writers ?? []).filter((one) => one.writer !== writer)
    return { ...source, meta: { ...meta, version, writers: [...others, token] } }
  })
  const reservations = reserved.map(({ _id, meta: { writers } }, at): GuardedWrite => {
    const update = { $set: { 'meta.version': version, 'meta.writers': writers }, $unset: { 'meta.digest': '' } }
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
    const writers = tokensAfterSum(runtime, source.meta.writers ?? [], isOwn)
    const set = { ...sums.get(source._id), 'meta.version': summed }
    const update =
      writers.length === 0
        ? { $set: set, $unset: { 'meta.writers': '' } }
        : { $set: { ...set, 'meta.writers': writers } }
    return { id: source._id, read: source.meta.version, update }
  })
  const refused = await writeGuarded(commands, 'sources', writes, summed)
  const written = new Set(marked.map(({ _id }) => _id).filter((id) => !refused.has(id)))
  return found.map(({ _id }) => _id).filter((id) => !written.has(id))
}

/**
 * Waits until the quotes of the open tokens in these reserved sources are written, as far as their writers are alive, and sets a new epoch.
 *
 * @returns the sources as they are stored, without the refused ones. A sum may begin now.
 */
export async function beginSum(
  { commands, runtime, watermarks }: RecountDeps,
  reserved: readonly SourceDocument[],
  isOwn: IsToken,
): Promise<SourceDocument[]> {
  let others = reserved.flatMap(({ meta: { writers = [] } }) =>
    writers.filter((token) => !isOwn(token) && !isStale(runtime, token)),
  )
  const began = runtime.monotonic()
  for (;;) {
    await watermarks.learn(others)
    others = others.filter((token) => !watermarks.covers(token))
    if (others.length === 0 || runtime.monotonic() - began > DRAIN_MS) break
    await runtime.delay(ASK_MS)
  }
  const epoch = runtime.newId()
  const marks = reserved.map(({ _id, meta }): GuardedWrite => {
    return { id: _id, read: meta.version, update: { $set: { 'meta.version': epoch, 'meta.epoch': epoch } } }
  })
  const refused = await writeGuarded(commands, 'sources', marks, epoch)
  return reserved
    .filter(({ _id }) => !refused.has(_id))
    .map((source) => watermarks.withOpenTokens({ ...source, meta: { ...source.meta, version: epoch, epoch } }))
}

/** The sums of the stored quotes of each of these sources. */
export async function sumQuotes(
  commands: Pick<StoreCommands, 'sumQuotes'>,
  ids: readonly string[],
): Promise<Map<string, QuoteTotals>> {
  const totals = new Map<string, QuoteTotals>(ids.map((id) => [id, { wordCount: 0, quoteCount: 0 }]))
  if (ids.length === 0) return totals
  for (const { _id, wordCount, quoteCount } of await commands.sumQuotes(ids)) totals.set(_id, { wordCount, quoteCount })
  return totals
}
