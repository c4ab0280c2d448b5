// Removes the words of deleted threads from a job's payload, and from the result that is retained
// with it.
import { contentOf, ERASED, erasedWith, REDACTED, type Redacts } from '@sluice/contract'
import {
  type CompletedJob,
  type IngestJob,
  type JobResult,
  outcomeOf,
  type QueuedThread,
  receiptOfDeleted,
  receiptWithoutWords,
} from '../job/job.ts'

/** A deletion that is stored. */
export interface StoredDeletion {
  tenant: string
  stamp: number
  sourceId: string
  /** Present if only these quotes of the source were deleted. */
  quoteIds?: readonly string[] | undefined
  redacts?: Redacts | undefined
  /** Absent if only the source's id is known. */
  name?: { service: string; externalId: string } | undefined
}

type QueuedQuote = QueuedThread['quotes'][number]

/** Computes ids as the store does. */
export interface Ids {
  sourceIdOf(tenant: string, name: { service: string; externalId: string }): string
  quoteIdsOf(sourceId: string, quotes: readonly QueuedQuote[]): string[]
}

/** Returns a thread of which only the names are left. */
function onlyNames({ source: { service, externalId } }: QueuedThread): QueuedThread {
  return { source: { service, externalId, title: '' }, quotes: [], deleted: true }
}

/**
 * Returns a payload without what was deleted of it: what was accepted before its deletion. Returns
 * undefined if the payload has no thread of a deletion's source.
 */
export function withoutWords(
  job: IngestJob,
  deletions: readonly StoredDeletion[],
  ids: Ids,
): IngestJob | undefined {
  let purged: number | undefined
  const threads = job.threads.map((thread, at) => {
    if ('deletes' in thread) return thread
    const id = ids.sourceIdOf(job.tenant, thread.source)
    return deletions
      .filter(({ sourceId }) => sourceId === id)
      .reduce((left, { stamp, quoteIds, redacts }) => {
        purged = Math.max(purged ?? job.purged ?? 0, stamp)
        // A payload from `createRetainLater` has no stamp.
        if ((job.stamp ?? 0) + at > stamp) return left
        if (quoteIds === undefined) return onlyNames(left)
        const kept = withoutQuotes(left, id, quoteIds, ids)
        return withoutRepeats(kept, redacts ?? 'quotes')
      }, thread)
  })
  return purged === undefined ? undefined : { ...job, threads, purged }
}

/**
 * The ids of quotes without an externalId count equal ones before, so of these all go, or none: one
 * that stays has the same words.
 */
function withoutQuotes(
  thread: QueuedThread,
  sourceId: string,
  deleted: readonly string[],
  { quoteIdsOf }: Ids,
): QueuedThread {
  const quoteIds = quoteIdsOf(sourceId, thread.quotes)
  const isDeleted = (at: number) => deleted.includes(quoteIds[at] ?? '')
  const kept = new Set(thread.quotes.filter((_, at) => !isDeleted(at)).map(contentOf))
  const quotes = thread.quotes.map((quote, at) => {
    const stays = !isDeleted(at) || (quote.externalId === undefined && kept.has(contentOf(quote)))
    if (stays) return quote
    return withoutText(quote)
  })
  return { ...thread, quotes }
}

/** The source stays the first field, and its name comes first: purge.lua reads them so. */
function withoutRepeats(thread: QueuedThread, redacts: Redacts): QueuedThread {
  return { ...thread, source: { ...thread.source, ...erasedWith(redacts, thread.source) } }
}

function withoutText({ externalId, exportedId }: QueuedQuote): QueuedQuote {
  const ids = {
    ...(externalId !== undefined && { externalId }),
    ...(exportedId !== undefined && { exportedId }),
  }
  return { text: '', ...ids, deleted: true }
}

/**
 * Returns the payload to retain of a job whose thread was deleted before it was stored, or of which
 * speakers are suppressed. Returns undefined for any other job: Redis has its payload.
 */
export function payloadToRetain({
  data,
  result: { receipts },
}: Pick<CompletedJob, 'data' | 'result'>): string | undefined {
  const [[thread], [receipt]] = [data.threads, receipts]
  if (!thread || 'deletes' in thread || !receipt || !('outcomes' in receipt)) return undefined
  const isDeleted = (at: number) => outcomeOf(receipt, at) === 'deleted'
  if (receipt.source.outcome === 'deleted')
    return JSON.stringify({ ...data, threads: [onlyNames(thread)] })
  const isSuppressed = (at: number) => outcomeOf(receipt, at) === 'suppressed'
  const { channelName, title } = receipt.sourceDiffers ?? {}
  const redacts = channelName === ERASED ? 'channel' : title === ERASED ? 'all' : 'quotes'
  const isChanged = thread.quotes.some((_, at) => isDeleted(at) || isSuppressed(at))
  if (redacts === 'quotes' && !isChanged) return undefined
  const quotes = thread.quotes.map((quote, at) => {
    if (isDeleted(at)) return withoutText(quote)
    return isSuppressed(at) ? { ...quote, ...REDACTED } : quote
  })
  return JSON.stringify({ ...data, threads: [{ ...withoutRepeats(thread, redacts), quotes }] })
}

/** Returns a retained result without words, for the payload that is left. */
export function resultWithout({ threads }: IngestJob, { receipts }: JobResult): JobResult {
  return {
    receipts: receipts.map((receipt, at) => {
      const thread = threads[at]
      if (!receipt || !thread || !('outcomes' in receipt) || 'deletes' in thread)
        return receipt ?? null
      if (thread.deleted) return receiptOfDeleted(receipt.source.createdAt)
      return receiptWithoutWords(thread, receipt)
    }),
  }
}
