// What a worker does with a job: it stores the job's threads and returns their receipts. It counts
// and logs each failed attempt. Before a job fails permanently, it recounts the job's sources.
import { setTimeout as delay } from 'node:timers/promises'
import type { Durations } from '@sluice/boot/durations'
import { textLength } from '@sluice/contract'
import { inSpan, type Logger, SpanKind, traceIdOf } from '@sluice/process'
import {
  asError,
  type Deletion,
  type FetchedJob,
  type Lane,
  makeReceipt,
  PartlyStoredError,
  type QueuedThread,
  type Receipt,
  receiptOfDeleted,
  type StoreUnavailable,
  sourceNameOf,
  UncompletedError,
  type Worked,
} from '@sluice/queue'
import { type BatchStore, RefusedWriteError, type StoreAnswer } from '@sluice/store'
import type { Deletions, SuppressionCopy } from './deletions.ts'
import type { createIngest, Ingested, IngestRequest } from './ingest.ts'
import type { WorkerMetrics } from './metrics.ts'
import { isStoreUnavailable, type LostStore, type ProbeStore } from './store-loss.ts'

interface WorkDeps {
  ingest: Pick<ReturnType<typeof createIngest>, 'ingest'>
  deletions: Deletions
  suppressions: Pick<SuppressionCopy, 'mark'>
  noteLost: (job: FetchedJob, lost: LostStore) => StoreUnavailable
  noteTimes: ReturnType<typeof createNoteTimes>
  log: Logger
}

/** Makes the function that stores the threads of a job and measures how long that takes. */
export function createWork({
  ingest,
  deletions,
  suppressions,
  noteLost,
  noteTimes,
  log,
}: WorkDeps): (job: FetchedJob) => Promise<Worked> {
  return (job) => {
    const { id, attempt, data } = job
    if (data.trace === undefined) return work(job)
    const attributes = {
      'sluice.job_id': id,
      'sluice.attempt': attempt,
      'sluice.tenant': data.tenant,
    }
    return inSpan('job', data.trace, { kind: SpanKind.CONSUMER, attributes }, (trace) =>
      work(job, trace),
    )
  }

  /** Makes the requests of a job, after what must precede its deletions. */
  function prepare(job: FetchedJob, deletes: boolean, trace?: string) {
    const requests = () => suppressions.mark(job, requestsOf(job, trace))
    if (!deletes) return requests()
    return Promise.all([deletions.name(job), deletions.record(job)]).then(requests)
  }

  async function work(job: FetchedJob, trace?: string): Promise<Worked> {
    const began = performance.now()
    // The clock of a promoted Redis may be behind the clock of the Redis that accepted the job.
    const queuedMs = Math.max(Math.round(began - job.waitsSince), 0)
    const { threads } = job.data
    const deletes = threads.some((one) => 'deletes' in one)
    const prepared = prepare(job, deletes, trace)
    // Awaits only a promise. An `await` of anything else is a moment in which no request of the
    // lane is under way, and `ready` would let the lane fetch too early.
    const requests = prepared instanceof Promise ? await prepared.catch(asError) : prepared
    if (requests instanceof RefusedWriteError) throw requests
    if (requests instanceof Error)
      return noteLost(job, { unavailable: true, reason: requests.message, since: began })
    const before = knownReceipts(job)
    const ingested = await Promise.all(
      requests.map((request, place) => (before[place] ? undefined : ingest.ingest(request))),
    )
    const lost = ingested.find((one) => one !== undefined && 'unavailable' in one)
    if (lost !== undefined) return noteLost(job, lost)
    const receipts = threads.map((thread, place) => {
      const one = ingested[place]
      return one !== undefined && 'answer' in one
        ? receiptOf(thread, one.answer, threads.length > 1)
        : (before[place] ?? null)
    })
    if (deletes) await deletions.purge(job, requests, receipts)
    const stored = receipts.filter((receipt) => receipt !== null)
    if (stored.length < receipts.length) throw partlyStored(job, ingested, receipts)
    const outcome = stored.length === 1 ? stored[0]?.source.outcome : undefined
    const quotes = stored.reduce((sum, receipt) => sum + quotesIn(receipt), 0)
    const durationMs = Math.round((performance.now() - began) * 10) / 10
    noteTimes(job.lane, queuedMs / 1000, durationMs / 1000)
    log.info({ ...describeJob(job), outcome, quotes, queuedMs, durationMs }, 'job.stored')
    return { receipts: stored }
  }
}

/**
 * Returns the receipts of threads that are not to be stored: they were stored before a retry, or
 * deleted while the job was in Redis.
 */
function knownReceipts({ data, receiptsBefore = [] }: FetchedJob) {
  if (data.purged === undefined) return receiptsBefore
  const acceptedAt = new Date(data.stamp / 1000).toISOString()
  return data.threads.map((thread, place) =>
    'deleted' in thread ? receiptOfDeleted(acceptedAt) : receiptsBefore[place],
  )
}

/** @param isBrief the job has several threads: nobody asks for more than outcomes. */
function receiptOf(
  thread: QueuedThread | Deletion,
  answer: StoreAnswer,
  isBrief: boolean,
): Receipt | null {
  if ('deletes' in thread)
    return 'outcome' in answer ? { source: { id: thread.deletes.sourceId, ...answer } } : null
  return 'outcome' in answer ? null : makeReceipt(thread, answer, isBrief)
}

const quotesIn = (receipt: Receipt) =>
  'outcomes' in receipt ? receipt.outcomes.length : receipt.source.quotes

/**
 * Makes a function that records the times of a job whose threads were stored, for Prometheus and
 * for heartbeats.
 */
export function createNoteTimes(
  { queueTime, storeTime, totalTime }: Pick<WorkerMetrics, 'queueTime' | 'storeTime' | 'totalTime'>,
  durations: Pick<Durations, 'observe'>,
) {
  return (lane: Lane, inQueue: number, inStore: number): void => {
    queueTime.observe({ lane }, inQueue)
    storeTime.observe({ lane }, inStore)
    totalTime.observe({ lane }, inQueue + inStore)
    durations.observe(`inQueue:${lane}`, inQueue)
    durations.observe(`inStore:${lane}`, inStore)
    durations.observe(lane, inQueue + inStore)
  }
}

/** Makes the requests that store a job's threads. */
export function requestsOf(job: FetchedJob, trace?: string): IngestRequest[] {
  const { id, lane, attempt, redelivered, quarantined, digests } = job
  const { tenant, stamp, threads, purged } = job.data
  const apart: Pick<IngestRequest, 'apart'> = quarantined
    ? { apart: { most: 1 } }
    : attempt > 1
      ? { apart: {} }
      : {}
  const names = threads.map(sourceNameOf)
  return threads.map((one, at) => {
    const first = names.findIndex(
      ({ externalId, service }) =>
        externalId === names[at]?.externalId && service === names[at]?.service,
    )
    const shared = {
      // Unique to the thread, and the same each time that the job is delivered.
      id: threads.length === 1 ? id : `${id}.${at}`,
      tenant,
      // Threads of the same source need an order. All others share a stamp, so that one update can
      // set it on many sources.
      stamp: first === at ? stamp : stamp + at,
      redelivered,
      ...apart,
      lane,
      ...(trace !== undefined && { trace }),
    }
    if ('deletes' in one) {
      const { deletes } = one
      const { until = shared.stamp } = deletes
      return { ...shared, stamp: until, deletes, documents: 1, characters: 0 }
    }
    const { quotes } = one
    const thread =
      purged === undefined ? one : { ...one, quotes: quotes.filter(({ deleted }) => !deleted) }
    return {
      ...shared,
      thread,
      documents: 1 + thread.quotes.length,
      characters: thread.quotes.reduce(
        (sum, quote) => sum + textLength(quote),
        textLength(thread.source),
      ),
      // The digest is of the whole thread, so it does not count if deleted quotes are left out.
      ...(purged === undefined && digests[at] !== undefined && { digest: digests[at] }),
    }
  })
}

/** The fields of a log line that name a job. */
export function describeJob({ id, data, attempt }: FetchedJob) {
  const { tenant, requestId, threads } = data
  const [first] = threads
  const content =
    threads.length > 1 || first === undefined ? { threads: threads.length } : sourceNameOf(first)
  return {
    jobId: id,
    requestId,
    traceId: data.trace && traceIdOf(data.trace),
    importId: data.import?.id,
    tenant,
    ...content,
    attempt,
  }
}

/**
 * Makes the error of a job of which some threads could not be stored. It names the first of these.
 *
 * @param ingested by place. Undefined for a thread that was stored earlier.
 */
function partlyStored(
  { data: { threads } }: FetchedJob,
  ingested: readonly (Ingested | undefined)[],
  receipts: readonly (Receipt | null)[],
): PartlyStoredError {
  const errors = ingested.map((one) =>
    one !== undefined && 'error' in one ? one.error : undefined,
  )
  const failedThreads = threads.flatMap((thread, place) => {
    const reason = errors[place]?.message
    return reason === undefined ? [] : [{ place, ...sourceNameOf(thread), reason }]
  })
  const [message = ''] = failedThreads.map(({ place, service, externalId, reason }) =>
    threads.length > 1
      ? `threads[${place}] ${JSON.stringify(`${service}/${externalId}`)}: ${reason}`
      : reason,
  )
  return new PartlyStoredError(message, failedThreads, receipts, errors.find(Boolean))
}

interface FinalFailureDeps {
  recountRequests: BatchStore['recountRequests']
  probeStore: ProbeStore
  noteLost: (job: FetchedJob, lost: LostStore) => StoreUnavailable
}

/**
 * While the store commits writes, a recount is tried this number of times, with a pause of
 * AGAIN_MS.
 */
const MAX_RECOUNTS = 3
const AGAIN_MS = 500

/**
 * Makes a function that recounts the sources of a job. If the store is unavailable, it has the job
 * returned. If the recount fails although the store commits writes, it throws: the job's tokens
 * then stay, and the next request or a repair sums.
 */
export function createBeforeFinalFailure({
  recountRequests,
  probeStore,
  noteLost,
}: FinalFailureDeps) {
  return async (job: FetchedJob): Promise<StoreUnavailable | undefined> => {
    const requests = requestsOf(job)
    for (let attempts = 1; ; attempts++) {
      const since = performance.now()
      try {
        await recountRequests(requests)
        return undefined
      } catch (error) {
        if (await isStoreUnavailable(error, probeStore, requests))
          return noteLost(job, { unavailable: true, reason: asError(error).message, since })
        if (attempts === MAX_RECOUNTS) throw error
        await delay(AGAIN_MS)
      }
    }
  }
}

/** The log line of a job names at most this number of failed threads, and counts the others. */
const LOGGED_THREADS = 20

interface NoteFailureDeps {
  metrics: Pick<WorkerMetrics, 'failed' | 'threadsFailed' | 'uncompleted'>
  /** Called with the reason if Redis refused to complete a job. */
  onUncompleted: (reason: string) => void
  /**
   * The log line of a job that failed permanently has a link to the job's page in this dashboard.
   */
  dashboardUrl: string | null
  log: Logger
}

/** Makes a function that counts a failed attempt, and logs its cause. */
export function createNoteFailure({ metrics, onUncompleted, dashboardUrl, log }: NoteFailureDeps) {
  return (job: FetchedJob, failure: Error, final: boolean): void => {
    const { threads } = job.data
    const failed = failure instanceof PartlyStoredError ? failure.failedThreads : undefined
    const isUncompleted = failure instanceof UncompletedError
    if (isUncompleted) {
      metrics.uncompleted.inc()
      onUncompleted(failure.message)
    }
    metrics.failed.inc({ final: String(final) })
    if (final) metrics.threadsFailed.inc(failed?.length ?? threads.length)
    const named = threads.length > 1 ? (failed ?? []) : []
    const failedThreads = named
      .slice(0, LOGGED_THREADS)
      .map(({ service, externalId }) => `${service}/${externalId}`)
    const more = named.length - failedThreads.length
    const fields = {
      ...describeJob(job),
      reason: failure.message,
      ...(named.length > 0 && { failedThreads }),
      ...(more > 0 && { more }),
      ...(final && dashboardUrl && { page: `${dashboardUrl.replace(/\/$/, '')}/jobs/${job.id}` }),
    }
    log[final || isUncompleted ? 'error' : 'warn'](fields, final ? 'job.failed' : 'job.try_failed')
  }
}
