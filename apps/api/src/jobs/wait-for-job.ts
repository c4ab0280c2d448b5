// Waits for a job that another request has enqueued.
import type { JobResult } from '@sluice/queue'
import type { ApiDeps } from '../api-deps.ts'
import type { RequestContext } from '../request-context.ts'

/** Resolves with undefined if the job is not done in time, the caller hangs up, or the grace time is over. */
export async function waitForJob(
  { replyListener, graceOver }: Pick<ApiDeps, 'replyListener' | 'graceOver'>,
  { response }: Pick<RequestContext, 'response'>,
  jobId: string,
  seconds: number,
): Promise<JobResult | undefined> {
  const { result, cancel } = replyListener.wait(jobId, seconds * 1000, { lookUpAtOnce: true })
  response.once('close', cancel)
  graceOver.addEventListener('abort', cancel)
  if (graceOver.aborted || response.closed) cancel()
  try {
    return await result
  } finally {
    graceOver.removeEventListener('abort', cancel)
    response.off('close', cancel)
  }
}
