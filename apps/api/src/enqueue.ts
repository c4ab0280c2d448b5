import { type IngestJob, type Lane, QueueUnavailableError } from '@sluice/queue'
import type { Call } from './call.ts'
import type { JobParts } from './job-parts.ts'
import { ProblemError } from './problem-error.ts'

/**
 * Puts a call's threads into the queue.
 *
 * @throws {ProblemError} 503 where that is not possible now.
 */
export async function enqueue(
  { enqueuer, metrics }: Pick<JobParts, 'enqueuer' | 'metrics'>,
  { tenant, requestId }: Pick<Call, 'tenant' | 'requestId'>,
  jobId: string,
  lane: Lane,
  job: Pick<IngestJob, 'threads' | 'retained' | 'replyTo' | 'import'>,
): Promise<void> {
  const began = performance.now()
  try {
    await enqueuer.enqueue(jobId, lane, { tenant, requestId, ...job })
  } catch (error) {
    if (error instanceof QueueUnavailableError) throw queueUnavailable()
    throw error
  }
  metrics.accepted.inc(job.threads.length)
  metrics.enqueueTime.observe((performance.now() - began) / 1000)
}

/** Nothing can be taken in while Redis is away. */
export function queueUnavailable(): ProblemError {
  const detail = 'The queue can not be reached right now. Send the request again; that is safe.'
  return new ProblemError('queue_unavailable', { detail }, { 'retry-after': '1' })
}
