import { ObjectId } from 'mongodb'
import type { Collections } from './collections.ts'
import { countQuotes, type QuoteTotals } from './count-quotes.ts'
import type { SourceDocument, WriterToken } from './documents.ts'
import { type GuardedWrite, writeGuarded } from './guarded-write.ts'
import { movedTotals } from './moved-totals.ts'
import { isContended } from './thread-work.ts'
import type { WrittenThread } from './write-quotes.ts'
import { WRITER_LIFETIME_MS } from './writer-lifetime.ts'

interface Commit {
  id: string
  source: SourceDocument
  /** None where the source already is as it should be. */
  write?: GuardedWrite
}

/**
 * Brings those sources into agreement with their quotes that opening could not, and takes this batch's writers off them.
 *
 * `wordCount` moves by what this batch's own quote writes changed where nobody else touched the source meanwhile; else it is summed
 * from the quotes, and stays suspect while another writer stands. Whoever commits with others about moves the version, so each of them sums in
 * its turn; the last one leaves an exact sum.
 *
 * @returns the sources as they are stored, by id, without those whose commit or some quote was refused.
 */
export async function commitSources(
  store: Collections,
  threads: WrittenThread[],
): Promise<Map<string, SourceDocument>> {
  const complete = threads.filter(isComplete)
  const uncommitted = complete.filter(({ isFinal }) => !isFinal)
  const contended = uncommitted.filter(({ round }) => isContended(round)).map(({ round }) => round.work.id)
  const sums = await countQuotes(store, contended)
  const version = new ObjectId()
  const commits = complete.map((thread) => commitOf(thread, sums.get(thread.round.work.id), version))
  const refused = await writeGuarded(
    store.guardedSources,
    commits.flatMap(({ write }) => write ?? []),
    version,
  )
  return new Map(commits.filter(({ id }) => !refused.has(id)).map(({ id, source }) => [id, source]))
}

function isComplete({ round, refusedQuotes }: WrittenThread): boolean {
  return refusedQuotes.size === 0 || round.plan.quoteWrites.every((draft) => !refusedQuotes.has(draft.document._id))
}

function commitOf(
  { round, source: opened, isFinal }: WrittenThread,
  sum: QuoteTotals | undefined,
  version: ObjectId,
): Commit {
  const { work, stored, plan } = round
  const current = opened ?? stored.source
  if (current === undefined) throw new Error(`source ${work.id} was neither read nor inserted`)
  if (isFinal) return { id: work.id, source: current }
  const totals = sum ?? movedTotals(current, plan.quoteWrites)
  const mine = new Set(work.requests.map((request) => request.id))
  const writers = (current.meta.writers ?? []).filter((token) => !mine.has(token.request) && isAlive(token))
  const { writers: _before, ...meta } = { ...plan.source.document.meta, version }
  const source: SourceDocument = {
    ...plan.source.document,
    ...totals,
    meta: writers.length === 0 ? meta : { ...meta, writers },
  }
  const isPlanned = plan.source.advanced || plan.source.changed
  if (!isPlanned && isUpToDate(current, source)) return { id: work.id, source: current }
  return { id: work.id, source, write: { id: work.id, read: current.meta.version, replace: source } }
}

function isAlive({ since }: WriterToken): boolean {
  return Date.now() - since.getTime() < WRITER_LIFETIME_MS
}

function isUpToDate(current: SourceDocument, wanted: SourceDocument): boolean {
  const same = current.wordCount === wanted.wordCount && current.quoteCount === wanted.quoteCount
  return same && current.meta.writers?.length === wanted.meta.writers?.length
}
