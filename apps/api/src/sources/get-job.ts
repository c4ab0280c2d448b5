// GET /jobs/{id}: the state of a job and, once it is done, the answer that a waiting caller would have got.
import { type JobAnswer, parsePrefer } from '@sluice/contract'
import { type FoundJob, isJobId } from '@sluice/queue'
import type { ApiDeps } from '../api-deps.ts'
import { jobFailed, ProblemError, problemBody } from '../request/problem-error.ts'
import type { Handler, RequestContext } from '../request/request-context.ts'
import { threadAnswer } from './post-source.ts'

export function getJob(deps: Pick<ApiDeps, 'findJob' | 'replyListener' | 'limits'>): Handler {
  return async (context, params) => {
    const id = String(params.id)
    context.log.jobId = id
    const found = await find(deps, context, id)
    const { wait = 0 } = parsePrefer(context.request.headers.prefer)
    const isDone = found.state === 'completed' || found.state === 'failed'
    if (wait === 0 || isDone) return { status: 200, body: describe(context, id, found) }
    const waitMs = Math.min(wait, deps.limits.waitSeconds) * 1000
    await deps.replyListener.wait(id, waitMs, context.signal, { lookUpAtOnce: true }).result
    const headers = { 'preference-applied': `wait=${wait}` }
    return { status: 200, body: describe(context, id, await find(deps, context, id)), headers }
  }
}

async function find({ findJob }: Pick<ApiDeps, 'findJob'>, { tenant }: RequestContext, id: string): Promise<FoundJob> {
  const found = isJobId(id) ? await findJob(id) : undefined
  // A tenant must not even learn that another tenant's job exists.
  if (found?.tenant !== tenant) throw new ProblemError('job_unknown')
  return found
}

function describe(
  { tenant, requestId }: RequestContext,
  id: string,
  { thread, state, changedAt, attempts, result }: FoundJob,
): JobAnswer {
  const answer: JobAnswer = { id, state, changedAt: changedAt.toISOString(), attempts }
  if (result === undefined) return answer
  const [receipt] = result.receipts
  if (receipt) return { ...answer, result: threadAnswer(tenant, thread, receipt) }
  return { ...answer, problem: problemBody(jobFailed(id), `/jobs/${id}`, requestId) }
}
