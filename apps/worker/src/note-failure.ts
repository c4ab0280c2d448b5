// Counts and logs the failed tries of jobs.
import type { Logger } from '@sluice/process'
import { type FetchedJob, PartlyStoredError } from '@sluice/queue'
import type { WorkerMetrics } from './metrics.ts'
import { describeJob } from './worker.ts'

/** A log line names at most this many failed threads of its job, and counts the others. */
const LOGGED_THREADS = 20

interface NoteFailureDeps {
  metrics: Pick<WorkerMetrics, 'failed' | 'threadsFailed'>
  /** The address of the dashboard. The log line of a job that failed for good links to the job's page there. */
  dashboardUrl: string | null
  log: Logger
}

/**
 * Makes a function that counts a failed try, and logs its cause. For a job of several threads, the log line names those
 * that failed.
 */
export function createNoteFailure({ metrics, dashboardUrl, log }: NoteFailureDeps) {
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
