// Stores the threads of fetched jobs, and returns their receipts.
import { textLength } from '@sluice/contract'
import { inSpan, type Logger, SpanKind, traceIdOf } from '@sluice/process'
import { type StoreUnavailable, type FetchedJob, makeReceipt, PartlyStoredError, type Receipt, type Worked } from '@sluice/queue'
import type { createIngest, Ingested, IngestRequest } from './ingest.ts'
import type { createNoteTimes } from './metrics.ts'
import type { LostStore } from './store-loss.ts'

interface WorkDeps {
  ingest: Pick<ReturnType<typeof createIngest>, 'ingest'>
  noteLost: (job: FetchedJob, lost: LostStore) => StoreUnavailable
  noteTimes: ReturnType<typeof createNoteTimes>
  log: Logger
}

/** Makes the function that stores the threads of a job and observes its times. */
export function createWork({ ingest, noteLost, noteTimes, log }: WorkDeps): (job: FetchedJob) => Promise<Worked> {
  return (job) => {
    const { id, attempt, data } = job
    if (data.trace === undefined) return work(job)
    const attributes = { 'sluice.job_id': id, 'sluice.attempt': attempt, 'sluice.tenant': data.tenant }
    return inSpan('job', data.trace, { kind: SpanKind.CONSUMER, attributes }, (trace) => work(job, trace))
  }

  async function work(job: FetchedJob, trace?: string): Promise<Worked> {
    const began = performance.now()
    // The clock of a promoted Redis may be behind that of the Redis that accepted the job.
    const queuedMs = Math.max(Math.round(began - job.waitsSince), 0)
    const requests = requestsOf(job, trace)
    const before = job.receiptsBefore ?? []
    const ingested = await Promise.all(
      requests.map((request, place) => (before[place] ? undefined : ingest.ingest(request))),
    )
    const lost = ingested.find((one) => one !== undefined && 'unavailable' in one)
    if (lost !== undefined) return noteLost(job, lost)
    const receipts = requests.map(({ thread }, place) => {
      const one = ingested[place]
      return one !== undefined && 'answer' in one ? makeReceipt(thread, one.answer) : (before[place] ?? null)
    })
    const stored = receipts.filter((receipt) => receipt !== null)
    if (stored.length < receipts.length) throw partlyStored(job, ingested, receipts)
    const outcome = stored.length === 1 ? stored[0]?.source.outcome : undefined
    const quotes = stored.reduce((sum, { outcomes }) => sum + outcomes.length, 0)
    const durationMs = Math.round((performance.now() - began) * 10) / 10
    noteTimes(job.lane, queuedMs / 1000, durationMs / 1000)
    log.info({ ...describeJob(job), outcome, quotes, queuedMs, durationMs }, 'job.stored')
    return { receipts: stored }
  }
}

/** The requests to store the threads of a job. */
export function requestsOf(job: FetchedJob, trace?: string): IngestRequest[] {
  const { id, lane, attempt, redelivered, quarantined, digests } = job
  const { tenant, stamp, threads } = job.data
  const apart: Pick<IngestRequest, 'apart'> = quarantined ? { apart: { most: 1 } } : attempt > 1 ? { apart: {} } : {}
  return threads.map((thread, at) => {
    const { service, externalId } = thread.source
    const first = threads.findIndex(({ source }) => source.externalId === externalId && source.service === service)
    return {
      // Unique to the thread, and the same each time the job is delivered.
      id: threads.length === 1 ? id : `${id}.${at}`,
      tenant,
      // Threads of one source need an order. All others share a stamp, so that one update can set it on many sources.
      stamp: first === at ? stamp : stamp + at,
      redelivered,
      ...apart,
      lane,
      thread,
      documents: 1 + thread.quotes.length,
      characters: thread.quotes.reduce((sum, quote) => sum + textLength(quote), textLength(thread.source)),
      ...(digests[at] !== undefined && { digest: digests[at] }),
      ...(trace !== undefined && { trace }),
    }
  })
}

/** The fields of a log line that name a job. */
export function describeJob({ id, data, attempt }: FetchedJob) {
  const { tenant, requestId, threads } = data
  const only = threads.length === 1 ? threads[0]?.source : undefined
  const content =
    only === undefined ? { threads: threads.length } : { service: only.service, externalId: only.externalId }
  const ids = { jobId: id, requestId, traceId: data.trace && traceIdOf(data.trace), importId: data.import?.id }
  return { ...ids, tenant, ...content, attempt }
}

/**
 * The error of a job of which some threads could not be stored. It names the first of them.
 *
 * @param ingested by place; undefined for a thread that was stored before.
 */
export function partlyStored(
  { data: { threads } }: FetchedJob,
  ingested: readonly (Ingested | undefined)[],
  receipts: readonly (Receipt | null)[],
): PartlyStoredError {
  const errors = ingested.map((one) => (one !== undefined && 'error' in one ? one.error : undefined))
  const failedThreads = threads.flatMap(({ source: { service, externalId } }, place) => {
    const reason = errors[place]?.message
    return reason === undefined ? [] : [{ place, service, externalId, reason }]
  })
  const [message = ''] = failedThreads.map(({ place, service, externalId, reason }) =>
    threads.length > 1 ? `threads[${place}] ${JSON.stringify(`${service}/${externalId}`)}: ${reason}` : reason,
  )
  return new PartlyStoredError(message, failedThreads, receipts, errors.find(Boolean))
}
