// Counts and logs each failed attempt of a job. Before a job fails for good, recounts its sources.
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '@sluice/process'
import { type StoreUnavailable, asError, type FetchedJob, PartlyStoredError, UncompletedError } from '@sluice/queue'
import type { BatchStore } from '@sluice/store'
import type { WorkerMetrics } from './metrics.ts'
import { isStoreUnavailable, type LostStore, type ProbeStore } from './store-loss.ts'
import { describeJob, requestsOf } from './worker.ts'

interface FinalFailureDeps {
  recountRequests: BatchStore['recountRequests']
  probeStore: ProbeStore
  noteLost: (job: FetchedJob, lost: LostStore) => StoreUnavailable
}

/** The attempts of a recount while the store commits writes, and the pause between two. */
const MAX_RECOUNTS = 3
const AGAIN_MS = 500

/**
 * Makes a function that recounts the sources of a job or, if the store is unavailable, returns the job. It throws if the
 * recount fails although the store commits writes: the job's tokens stay, and the next request or a repair sums.
 */
export function createBeforeFinalFailure({ recountRequests, probeStore, noteLost }: FinalFailureDeps) {
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

/** A log line names at most this many failed threads of its job, and counts the others. */
const LOGGED_THREADS = 20

interface NoteFailureDeps {
  metrics: Pick<WorkerMetrics, 'failed' | 'threadsFailed' | 'uncompleted'>
  /** Receives why Redis refused to complete a job. */
  onUncompleted: (reason: string) => void
  /** The log line of a job that failed for good links to the job's page in this dashboard. */
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
    const failedThreads = named.slice(0, LOGGED_THREADS).map(({ service, externalId }) => `${service}/${externalId}`)
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
