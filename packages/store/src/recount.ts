import type { ObjectId } from 'mongodb'
import type { QuoteTotals, SourceTotals, StoreCommands } from './commands.ts'
import type { WriterToken } from './documents.ts'
import { type GuardedWrite, writeGuarded } from './guarded-write.ts'
import type { Runtime } from './runtime.ts'

// Brings sources into agreement with their quotes by a sum. A sum is written only under a version that the summing process set before it began to sum:
// a writer whose quotes the sum may have missed then finds the version moved, and sums in its turn.

/** One sum must not take too long, however many sources there are. */
const SOURCES_AT_ONCE = 100

/** A source gives way to others after its recount was refused, for a random time of at most this many ms. */
const BACK_OFF_MS = 50

/**
 * Sums the quotes of these sources and writes the totals, until no write is refused.
 *
 * @param isDone tells the tokens to take off: all quotes of such a token are written.
 */
export async function recount(
  commands: StoreCommands,
  runtime: Runtime,
  ids: readonly string[],
  isDone: (token: WriterToken) => boolean,
): Promise<void> {
  for (let start = 0; start < ids.length; start += SOURCES_AT_ONCE) {
    let left: readonly string[] = ids.slice(start, start + SOURCES_AT_ONCE)
    while (left.length > 0) {
      const refused = await recountOnce(commands, runtime, left, isDone)
      if (refused.length > 0) await runtime.delay(runtime.random() * BACK_OFF_MS)
      left = refused
    }
  }
}

/** Returns the sources whose recount was refused. */
async function recountOnce(
  commands: StoreCommands,
  runtime: Runtime,
  ids: readonly string[],
  isDone: (token: WriterToken) => boolean,
): Promise<string[]> {
  const found = await commands.find('sources', ids)
  const mark = runtime.newId()
  const marks = found.map((source): GuardedWrite => {
    const update = { $set: { 'meta.version': mark }, $unset: { 'meta.digest': '' } }
    return { id: source._id, read: source.meta.version, update }
  })
  const unmarked = await writeGuarded(commands, 'sources', marks, mark)
  const marked = found.filter(({ _id }) => !unmarked.has(_id))
  const sums = await sumQuotes(commands, marked.map(({ _id }) => _id))
  const version = runtime.newId()
  const writes = marked.map((source) => totalsWrite(source, sums.get(source._id), isDone, mark, version))
  const refused = await writeGuarded(commands, 'sources', writes, version)
  return [...unmarked, ...refused]
}

function totalsWrite(
  { _id, meta }: SourceTotals,
  totals: QuoteTotals | undefined,
  isDone: (token: WriterToken) => boolean,
  read: ObjectId,
  version: ObjectId,
): GuardedWrite {
  const writers = (meta.writers ?? []).filter((token) => !isDone(token))
  const set = { ...totals, 'meta.version': version }
  const update =
    writers.length === 0
      ? { $set: set, $unset: { 'meta.writers': '' } }
      : { $set: { ...set, 'meta.writers': writers } }
  return { id: _id, read, update }
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
