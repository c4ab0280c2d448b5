// GET /jobs/{id}.
import { type FoundJob, isJobId } from '@sluice/queue'
import type { ApiDeps } from '../api-deps.ts'
import { jobFailed, overloaded, ProblemError, problemBody } from '../request/problem-error.ts'
import type { Answer, Handler, RequestContext } from '../request/request-context.ts'
import { chargeAnswer, type ReadLimitDeps } from '../request/shares.ts'
import { FREE_ANSWER_BYTES } from '../settings.ts'

type JobDeps = ReadLimitDeps & { enqueuer: Pick<ApiDeps['enqueuer'], 'admitRead'> } & Pick<
    ApiDeps,
    'findJob' | 'readRetained' | 'replyListener' | 'parser' | 'settings' | 'loopDelay'
  >

/**
 * GET /jobs/{id}: the job's state and, once it is done, the answer that a waiting caller would have
 * got.
 */
export function getJob(deps: JobDeps): Handler {
  return async (context, params) => {
    const id = String(params.id)
    context.log.jobId = id
    const found = await findOrRefuse(deps, context, id)
    const { wait = 0 } = context.prefer
    const isDone = found.state === 'completed' || found.state === 'failed'
    if (wait === 0 || isDone) return jobAnswer(deps, context, id, found)
    const waitMs = Math.min(wait, deps.settings.waitSeconds) * 1000
    // A failed wait does not matter: `findOrRefuse` reports a job that Redis no longer knows.
    await deps.replyListener
      .wait(id, waitMs, context.signal, { lookUpAtOnce: true })
      .result.catch(() => {})
    const headers = { 'preference-applied': `wait=${wait}` }
    return {
      ...(await jobAnswer(deps, context, id, await findOrRefuse(deps, context, id))),
      headers,
    }
  }
}

async function findOrRefuse(
  { findJob }: Pick<ApiDeps, 'findJob'>,
  { tenant }: RequestContext,
  id: string,
): Promise<FoundJob> {
  const found = isJobId(id) ? await findJob(tenant, id) : undefined
  if (found === undefined) throw new ProblemError('job_unknown')
  return found
}

/**
 * The rate at which a tenant may read large jobs: a fifth of what one thread of a common machine
 * can build.
 */
const BYTES_PER_MS = 4_000

async function jobAnswer(
  deps: JobDeps,
  context: RequestContext,
  id: string,
  found: FoundJob,
): Promise<Answer> {
  const { state, attempts, bytes } = found
  const job = { id, state, changedAt: found.changedAt.toISOString(), attempts }
  if (state === 'failed')
    return {
      status: 200,
      body: { ...job, problem: problemBody(jobFailed(id), `/jobs/${id}`, context.requestId) },
    }
  if (state !== 'completed') return { status: 200, body: job }
  async function answer(): Promise<Answer> {
    const texts = await deps.readRetained(id)
    const content = texts && (await deps.parser.jobAnswer(job, texts))
    if (!content?.length) throw new ProblemError('job_unknown')
    return { status: 200, content }
  }
  if (bytes <= FREE_ANSWER_BYTES) return answer()
  if (deps.loopDelay.p99Ms > deps.settings.maxLoopDelayMs) throw overloaded()
  deps.enqueuer.admitRead(context)
  const answerLarge = () => {
    // Twice the bytes, for the job's texts and for the answer, which is about as long.
    deps.bodyBudget.reserve(context, 2 * bytes)
    chargeAnswer(context, bytes)
    return answer()
  }
  return deps.readTurns.take(context, answerLarge, bytes / BYTES_PER_MS)
}
