// Failed jobs, as the worker throws, counts and logs them.
import type { Logger } from '@sluice/ops'
import { type FetchedJob, PartlyStoredError, type Receipt } from '@sluice/queue'
import type { WorkerMetrics } from './metrics.ts'
import type { Ingested } from './store-away.ts'

/** The error of a job of which some threads could not be stored. It names the first of them. */
export function partlyStored(
  { data: { threads } }: FetchedJob,
  ingested: readonly Ingested[],
  receipts: readonly (Receipt | null)[],
): PartlyStoredError {
  const errors = ingested.map((one) => ('error' in one ? one.error : undefined))
  const failedThreads = threads.flatMap(({ source: { service, externalId } }, place) => {
    const reason = errors[place]?.message
    return reason === undefined ? [] : [{ place, service, externalId, reason }]
  })
  const [message = ''] = failedThreads.map(({ place, service, externalId, reason }) =>
    threads.length > 1 ? `threads[${place}] ${JSON.stringify(`${service}/${externalId}`)}: ${reason}` : reason,
  )
  return new PartlyStoredError(message, failedThreads, receipts, errors.find(Boolean))
}

/** More failed threads of a job are only counted in its log line. */
const LOGGED_THREADS = 20

interface NoteFailureDeps {
  metrics: Pick<WorkerMetrics, 'failed' | 'threadsFailed'>
  /** The dashboard, whose page of a job that failed for good its log line names. */
  dashboardUrl: string | null
  /** The fields of a log line that name a job. */
  describeJob: (job: FetchedJob) => object
  log: Logger
}

/** Makes a function that counts and logs a failed try, with its cause and, of a job with several, the failed threads. */
export function createNoteFailure({ metrics, dashboardUrl, describeJob, log }: NoteFailureDeps) {
  return (job: FetchedJob, failure: Error, final: boolean): void => {
    const { threads } = job.data
    const failed = failure instanceof PartlyStoredError ? failure.failedThreads : undefined
    metrics.failed.inc({ final: String(final) })
    if (final) metrics.threadsFailed.inc(failed?.length ?? threads.length)
    const named = threads.length > 1 ? (failed ?? []) : []
    const failedThreads = named.slice(0, LOGGED_THREADS).map(({ service, externalId }) => `${service}/${externalId}`)
    const more = named.length - failedThreads.length
    const fields = {
      ...describeJob(job),
      reason: failure.message,
      ...(named.length > 0 && { failedThreads }),
      ...(more > 0 && { more }),
      ...(final && dashboardUrl && { page: `${dashboardUrl.replace(/\/$/, '')}/jobs/${job.id}` }),
    }
    log[final ? 'error' : 'warn'](fields, final ? 'job.failed' : 'job.try_failed')
  }
}
