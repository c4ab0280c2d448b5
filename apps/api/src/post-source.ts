import { acceptedAnswer, type ParseThread, type Preferences, parsePrefer, type Thread } from '@sluice/contract'
import { type JobResult, newJobId, readReceipt } from '@sluice/queue'
import { quoteIdsOf, sourceIdOf } from '@sluice/store/ids'
import { judgeBodyHead } from './body-head.ts'
import type { Answer, Call, Handle } from './call.ts'
import { checkThread } from './check-thread.ts'
import { enqueue } from './enqueue.ts'
import type { JobParts } from './job-parts.ts'
import { parseJson } from './parse-json.ts'
import { ProblemError } from './problem-error.ts'
import { readBody } from './read-body.ts'

export interface PostSourceParts extends JobParts {
  parseThread: ParseThread
  bodyBytes: number
  /** The longest that a caller waits for its job, in seconds. */
  waitSeconds: number
}

/** POST /sources: takes a thread in and, unless the caller prefers otherwise, waits until it is stored. */
export function postSource(parts: PostSourceParts): Handle {
  return async (call) => {
    parts.admit()
    const { coding } = judgeBodyHead(call.request, ['application/json'], parts.bodyBytes)
    const prefer = parsePrefer(call.request.headers.prefer)
    const body = parseJson(await readBody(call, coding, parts.bodyBytes, parts.stopping))
    const thread = checkThread(parts.parseThread, body, prefer)
    const { service, externalId } = thread.source
    Object.assign(call.log, { service, externalId, quotes: thread.quotes.length })
    return enqueueAndWait(parts, call, thread, prefer)
  }
}

async function enqueueAndWait(
  parts: PostSourceParts,
  call: Call,
  thread: Thread,
  prefer: Preferences,
): Promise<Answer> {
  const { room, waitSeconds } = parts
  const seconds = Math.min(prefer.wait ?? (prefer.respondAsync ? 0 : waitSeconds), waitSeconds)
  const jobId = newJobId()
  call.log.jobId = jobId
  if (seconds === 0) {
    await enqueue(parts, call, jobId, 'bulk', { threads: [thread], retained: true })
    return accepted(thread, jobId, prefer)
  }
  const { result, cancel } = room.wait(jobId, seconds * 1000)
  call.response.once('close', cancel)
  parts.stopping.addEventListener('abort', cancel)
  try {
    await enqueue(parts, call, jobId, 'interactive', { threads: [thread], retained: false, replyTo: room.replica })
    if (parts.stopping.aborted) cancel()
    const ended = (await result) ?? (call.response.closed ? undefined : await parts.tell(jobId))
    if (ended !== undefined) return stored(call, thread, jobId, ended, prefer)
  } finally {
    cancel()
    parts.stopping.removeEventListener('abort', cancel)
  }
  if (prefer.respondAsync || prefer.wait !== undefined) return accepted(thread, jobId, prefer)
  const detail = `The job goes on; see /jobs/${jobId}. Posting the same again is safe, until something newer was posted.`
  throw new ProblemError('job_pending', { detail, jobId }, { location: `/jobs/${jobId}` })
}

function accepted(thread: Thread, jobId: string, prefer: Preferences): Answer {
  const waited = prefer.wait === undefined ? [] : [`wait=${prefer.wait}`]
  const applied = [...(prefer.respondAsync ? ['respond-async'] : []), ...waited, ...strictly(prefer)]
  const headers = { location: `/jobs/${jobId}`, 'preference-applied': applied.join(', ') }
  return { status: 202, body: acceptedAnswer(thread), headers }
}

function stored(call: Call, thread: Thread, jobId: string, result: JobResult, prefer: Preferences): Answer {
  const [receipt] = result.receipts
  if (!receipt) throw jobFailed(jobId)
  call.log.outcome = receipt.source.outcome
  const source = sourceIdOf(call.tenant, thread.source)
  const body = readReceipt(thread, receipt, { source, quotes: quoteIdsOf(source, thread.quotes) })
  const applied = strictly(prefer)
  return applied.length === 0
    ? { status: 200, body }
    : { status: 200, body, headers: { 'preference-applied': applied.join() } }
}

function strictly({ strict }: Preferences): string[] {
  return strict ? ['handling=strict'] : []
}

/** A job has failed for good. Why is for the operators, who find it by its id. */
export function jobFailed(jobId?: string): ProblemError {
  const detail = 'The job failed for good and is kept for the operators, who can mend the cause and run it again.'
  return new ProblemError('job_failed', jobId === undefined ? { detail } : { detail, jobId })
}
