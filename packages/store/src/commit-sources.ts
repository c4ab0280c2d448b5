import type { StoreCommands } from './commands.ts'
import type { SourceDocument, WriterToken } from './documents.ts'
import { type GuardedWrite, writeGuarded } from './guarded-write.ts'
import { sumQuotes } from './recount.ts'
import type { Runtime } from './runtime.ts'
import { movedTotals, type OpenThread } from './write-threads.ts'

// Commits the sources that could not be opened as final: those with open tokens of others or of an earlier round, and those that get a new cover beside changed quotes.

/** A token this old belongs to a dead writer and is taken off by the next sum, in ms. Until then it costs each request for the source a sum. */
const TOKEN_LIFETIME_MS = 5 * 60 * 1000

/**
 * Writes the planned fields and the totals under the version that opening set, and takes this batch's tokens off. Where open tokens stood, the totals are the sum of the
 * quotes, which begins after opening: every writer that the sum may have missed finds the version moved when it settles.
 *
 * @returns the sources as they are stored, by id, without the refused ones.
 */
export async function commitSources(
  commands: StoreCommands,
  runtime: Runtime,
  threads: readonly OpenThread[],
): Promise<Map<string, SourceDocument>> {
  if (threads.length === 0) return new Map()
  const contended = threads.filter(({ round }) => round.stored.source?.meta.writers !== undefined)
  const sums = await sumQuotes(commands, contended.map(({ round }) => round.work.id))
  const version = runtime.newId()
  const isExpired = ({ since }: WriterToken) => runtime.now() - since.getTime() > TOKEN_LIFETIME_MS
  const commits = threads.map(({ round, source: opened }) => {
    const { work, plan, quoteWrites } = round
    const mine = new Set(work.requests.map(({ id }) => id))
    const writers = (opened.meta.writers ?? []).filter((token) => !mine.has(token.request) && !isExpired(token))
    const { writers: _before, ...meta } = plan.source.document.meta
    const source: SourceDocument = {
      ...plan.source.document,
      ...(sums.get(work.id) ?? movedTotals(opened, quoteWrites)),
      meta: { ...meta, version, ...(writers.length > 0 && { writers }) },
    }
    const write: GuardedWrite = { id: work.id, read: opened.meta.version, replace: source }
    return { source, write }
  })
  const writes = commits.map(({ write }) => write)
  const refused = await writeGuarded(commands, 'sources', writes, version)
  return new Map(commits.filter(({ source }) => !refused.has(source._id)).map(({ source }) => [source._id, source]))
}
