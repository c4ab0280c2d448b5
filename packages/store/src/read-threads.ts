import type { Collections } from './collections.ts'
import type { SourceDocument, WriterBatch } from './documents.ts'
import { findByIds } from './find-by-ids.ts'
import { withLiveTokens } from './live-tokens.ts'
import { isRepeat } from './plan-repeat.ts'
import type { StoredThread } from './thread-plan.ts'
import type { ThreadWork } from './thread-work.ts'
import type { Writer } from './writer.ts'

/** The requests for a thread, and what is stored of it. */
export interface ReadThread {
  work: ThreadWork
  stored: StoredThread
}

/**
 * Reads the sources, learns who is writing them, and then reads of those that exist the quotes that the requests touch and do not merely repeat. The order matters: a
 * source's version tells whether a quote may have changed since, and a writer that is done has written all of its quotes.
 *
 * @param own this process's batch, where it has begun to write.
 */
export async function readThreads(
  store: Collections,
  writer: Writer,
  works: ThreadWork[],
  own: WriterBatch | undefined,
): Promise<ReadThread[]> {
  const { sources, quotes } = store
  const foundSources = await findByIds(
    works.map((work) => work.id),
    (some, options) => sources.find({ _id: { $in: some } }, options).toArray(),
  )
  const liveSources = await withLiveTokens(store, writer, foundSources, own)
  const sourceById = new Map(liveSources.map((source) => [source._id, source]))
  const wanted = works.flatMap((work) => (needsQuotes(sourceById.get(work.id), work) ? touchedQuotes(work) : []))
  const foundQuotes = await findByIds(wanted, (some, options) => quotes.find({ _id: { $in: some } }, options).toArray())
  const quoteById = new Map(foundQuotes.map((quote) => [quote._id, quote]))
  return works.map((work) => {
    const source = sourceById.get(work.id)
    return { work, stored: source === undefined ? { quotes: quoteById } : { source, quotes: quoteById } }
  })
}

function needsQuotes(source: SourceDocument | undefined, { requests }: ThreadWork): boolean {
  return source !== undefined && !isRepeat(source, requests)
}

function touchedQuotes(work: ThreadWork): string[] {
  return [...new Set(work.requests.flatMap((request) => request.quoteIds))]
}
