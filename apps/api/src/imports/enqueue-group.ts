// Enqueues the jobs of one import in their order. While the queue accepts no more, the import waits.
import { setTimeout as delay } from 'node:timers/promises'
import { type IngestJob, QueueFullError, RateLimitedError } from '@sluice/queue'
import type { ApiDeps, ApiLimits } from '../api-deps.ts'
import type { RequestContext } from '../request-context.ts'
import { enqueueJob } from '../sources/post-source.ts'

export type EnqueueGroupDeps = Pick<ApiDeps, 'enqueuer' | 'metrics' | 'graceOver'> & {
  limits: Pick<ApiLimits, 'waitSeconds'>
}

/** When an import last made progress, in ms since 1970. */
export type Progress = { at: number }

/** The pauses between two attempts: the first, and the longest, in ms. */
const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 2_000

/**
 * Makes a function that enqueues jobs one after the other: if a later one overtook one that was refused, items of one externalId would be accepted in
 * another order than they were sent in.
 */
export function createPatientEnqueuer(
  deps: EnqueueGroupDeps,
  context: Pick<RequestContext, 'tenant' | 'requestId' | 'quota' | 'response'>,
  progress: Progress,
) {
  let last: Promise<unknown> = Promise.resolve()

  async function enqueuePatiently(
    jobId: string,
    job: Omit<IngestJob, 'tenant' | 'stamp' | 'requestId'>,
  ): Promise<undefined> {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      try {
        await enqueueJob(deps, context, jobId, 'bulk', job)
        progress.at = Date.now()
        return undefined
      } catch (error) {
        if (!mayTryAgain(error)) throw error
        await delay(pauseMs * (0.5 + Math.random()), undefined, { signal: deps.graceOver }).catch(() => {})
      }
    }
  }

  function mayTryAgain(error: unknown): boolean {
    const isRefusal = error instanceof QueueFullError || error instanceof RateLimitedError
    const isOver = deps.graceOver.aborted || context.response.closed
    return isRefusal && !isOver && Date.now() - progress.at < deps.limits.waitSeconds * 1000
  }

  /** @throws what `Enqueuer.enqueue` throws; that the queue is full or the key's quota used up only after no progress for as long as a caller may wait. */
  return (jobId: string, job: Omit<IngestJob, 'tenant' | 'stamp' | 'requestId'>): Promise<undefined> => {
    const enqueuing = last.then(() => enqueuePatiently(jobId, job))
    last = enqueuing.catch(() => {})
    return enqueuing
  }
}
