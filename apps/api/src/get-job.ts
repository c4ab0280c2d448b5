import { createProblem, type JobAnswer, parsePrefer } from '@sluice/contract'
import { type FoundJob, QueueUnavailableError, readReceipt } from '@sluice/queue'
import { quoteIdsOf, sourceIdOf } from '@sluice/store/ids'
import type { Call, Handle } from './call.ts'
import { queueUnavailable } from './enqueue.ts'
import type { JobParts } from './job-parts.ts'
import { jobFailed } from './post-source.ts'
import { ProblemError } from './problem-error.ts'

/** Ids that were never given out need no look-up. */
const JOB_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** GET /jobs/{id}: how a job stands, and once it is done what a waiting caller would have got. */
export function getJob(parts: Pick<JobParts, 'findJob' | 'room' | 'stopping'> & { waitSeconds: number }): Handle {
  return async (call) => {
    const id = String(call.params.id)
    call.log.jobId = id
    const found = await find(parts, call, id)
    const { wait = 0 } = parsePrefer(call.request.headers.prefer)
    const isOver = found.state === 'completed' || found.state === 'failed'
    if (wait === 0 || isOver) return { status: 200, body: describe(call, id, found) }
    await waitFor(parts, call, id, Math.min(wait, parts.waitSeconds))
    const headers = { 'preference-applied': `wait=${wait}` }
    return { status: 200, body: describe(call, id, await find(parts, call, id)), headers }
  }
}

async function find({ findJob }: Pick<JobParts, 'findJob'>, { tenant }: Call, id: string): Promise<FoundJob> {
  try {
    const found = JOB_ID.test(id) ? await findJob(id) : undefined
    // A tenant must not even learn that another one's job exists.
    if (found?.tenant === tenant) return found
  } catch (error) {
    if (error instanceof QueueUnavailableError) throw queueUnavailable()
    throw error
  }
  throw new ProblemError('job_unknown', {
    detail: 'There is no job of this id, or it is too long ago that it finished.',
  })
}

async function waitFor(
  { room, stopping }: Pick<JobParts, 'room' | 'stopping'>,
  { response }: Call,
  id: string,
  seconds: number,
): Promise<void> {
  const { result, cancel } = room.wait(id, seconds * 1000, { replyComes: false })
  response.once('close', cancel)
  stopping.addEventListener('abort', cancel)
  if (stopping.aborted || response.closed) cancel()
  await result
  stopping.removeEventListener('abort', cancel)
}

function describe(
  { tenant, requestId }: Call,
  id: string,
  { thread, state, changedAt, attempts, result }: FoundJob,
): JobAnswer {
  const answer: JobAnswer = { id, state, changedAt: changedAt.toISOString(), attempts }
  if (result === undefined) return answer
  const [receipt] = result.receipts
  if (!receipt) {
    const { code, members } = jobFailed(id)
    return { ...answer, problem: createProblem(code, { ...members, instance: `/jobs/${id}`, requestId }) }
  }
  const source = sourceIdOf(tenant, thread.source)
  const ids = { source, quotes: quoteIdsOf(source, thread.quotes) }
  return { ...answer, result: readReceipt(thread, receipt, ids) }
}
