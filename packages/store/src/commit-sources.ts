// Commits the sources that could not be opened in their final form: those to sum, and those that get a new cover beside changed quotes.
import type { SourceDocument } from './documents.ts'
import { sumQuotes } from './recount.ts'
import type { OpenThread } from './thread.ts'
import { isMine, tokensAfterSum } from './tokens.ts'
import { type GuardedWrite, totalsAfter, type WriteDeps, writeGuarded } from './write-threads.ts'

/**
 * Writes the planned fields and the totals, and removes the tokens of these requests.
 *
 * @param threads whose quotes are all written; for those to sum, `prepareSum` was called before.
 * @returns the sources as they are stored, by id, without the refused ones.
 */
export async function commitSources(
  { commands, runtime }: WriteDeps,
  threads: readonly OpenThread[],
): Promise<Map<string, SourceDocument>> {
  if (threads.length === 0) return new Map()
  const toSum = threads.filter(({ kind }) => kind === 'sum').map(({ round }) => round.work.id)
  const sums = await sumQuotes(commands, toSum)
  const version = runtime.newId()
  const sources = threads.map(({ round, source: opened }): SourceDocument => {
    const { work, plan, quoteWrites } = round
    const { epoch, tokens: before = [] } = opened.meta
    const tokens = tokensAfterSum(runtime, before, (token) => isMine(work, token))
    const { tokens: _, ...meta } = plan.source.document.meta
    return {
      ...plan.source.document,
      ...(sums.get(work.id) ?? totalsAfter(opened, quoteWrites)),
      meta: { ...meta, version, ...(epoch && { epoch }), ...(tokens.length > 0 && { tokens }) },
    }
  })
  const writes = sources.map((source, at): GuardedWrite => {
    return { id: source._id, read: threads[at]?.source.meta.version ?? version, replace: source }
  })
  const refused = await writeGuarded(commands, 'sources', writes, version)
  return new Map(sources.filter(({ _id }) => !refused.has(_id)).map((source) => [source._id, source]))
}
