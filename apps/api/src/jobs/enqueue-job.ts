// Enqueues threads as a job, and retains the job's result if its caller gets the job's id instead.
import type { IngestJob, JobResult, Lane, Results } from '@sluice/queue'
import type { ApiDeps } from '../api-deps.ts'
import type { RequestContext } from '../request-context.ts'

/**
 * Enqueues threads as one job, and counts them.
 *
 * @param jobId from `newJobId`. A caller waits for it before it is enqueued, so that no reply is missed.
 * @throws {QueueUnavailableError}
 */
export async function enqueueJob(
  { enqueuer, metrics }: Pick<ApiDeps, 'enqueuer' | 'metrics'>,
  { tenant, requestId }: Pick<RequestContext, 'tenant' | 'requestId'>,
  jobId: string,
  lane: Lane,
  job: Pick<IngestJob, 'threads' | 'retained' | 'replyTo' | 'import'>,
): Promise<void> {
  const startedAt = performance.now()
  await enqueuer.enqueue(jobId, lane, { tenant, requestId, ...job })
  metrics.accepted.inc(job.threads.length)
  metrics.enqueueTime.observe((performance.now() - startedAt) / 1000)
}

/**
 * Creates the last check before a caller gets its job's id instead of its result. If Redis is away, the caller gets the id
 * all the same: the job exists, but its result may expire earlier.
 */
export function createRetain(results: Pick<Results, 'retain'>, findJob: ApiDeps['findJob']): ApiDeps['retain'] {
  return async (jobId): Promise<JobResult | undefined> => {
    try {
      return (await results.retain(jobId)) ?? (await findJob(jobId))?.result
    } catch {
      return undefined
    }
  }
}
