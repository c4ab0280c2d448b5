import { createProblem } from '@sluice/contract'
import type { Logger } from '@sluice/ops'
import type { Keyring } from '@sluice/store/keys'
import type { ApiMetrics } from './api-metrics.ts'
import { authenticate } from './authenticate.ts'
import { type Answer, type Call, type Handle, STREAMED } from './call.ts'
import { ProblemError } from './problem-error.ts'
import { CallerGoneError } from './read-body.ts'
import { requestIdOf } from './request-id.ts'
import { sendAnswer } from './send-answer.ts'

/** What the edge needs to serve any route. */
export interface Edge {
  keyring: Keyring
  metrics: ApiMetrics
  log: Logger
  /** The process stops: each answer is its connection's last. */
  isStopping: () => boolean
}

/** Takes a call through a route: its key first, then what the route does; whatever happens there is an answer, a log line and a count. */
export async function serve(
  { keyring, metrics, log, isStopping }: Edge,
  { open, handle }: { open: boolean; handle: Handle },
  { request, response, params }: Pick<Call, 'request' | 'response' | 'params'>,
): Promise<void> {
  const began = performance.now()
  const call: Call = { requestId: requestIdOf(request), request, response, params, tenant: '', log: {} }
  response.on('error', () => {}) // a caller that hung up; 'close' follows
  const method = request.method ?? ''
  const path = request.url?.split('?', 1)[0] ?? ''
  try {
    if (!open) Object.assign(call, await authenticate(keyring, request))
    finish(await handle(call))
  } catch (error) {
    if (error instanceof CallerGoneError) finish(undefined)
    else finish(problemAnswer(error, call, path))
  }

  function finish(answer: Answer | typeof STREAMED | undefined): void {
    const status = send(answer)
    const durationMs = Math.round((performance.now() - began) * 10) / 10
    metrics.requests.inc({ status: String(status) })
    metrics.requestTime.observe(durationMs / 1000)
    const about = { requestId: call.requestId, method, path, status, tenant: call.tenant, ...call.log, durationMs }
    log[Number(status) >= 500 ? 'warn' : 'info'](about, 'request.answered')
  }

  function send(answer: Answer | typeof STREAMED | undefined): number | 'gone' {
    if (answer === STREAMED) return response.statusCode
    if (answer !== undefined && !response.closed && !response.headersSent) {
      sendAnswer(call, answer, isStopping())
      return answer.status
    }
    // An answer that was begun can't be taken back: breaking it off tells its reader that it is not whole.
    response.destroy()
    return 'gone'
  }
}

function problemAnswer(error: unknown, call: Call, path: string): Answer {
  const problem = error instanceof ProblemError ? error : internal(error, call)
  const { requestId, log } = call
  log.code = problem.code
  const body = createProblem(problem.code, { ...problem.members, instance: path, requestId })
  return { status: body.status, body, headers: problem.headers }
}

/** Our own fault: the log has what happened, the caller the id to ask about it by. */
function internal(err: unknown, { log }: Call): ProblemError {
  log.err = err
  return new ProblemError('internal', { detail: 'Something went wrong on our side. The request id tells us what.' })
}
