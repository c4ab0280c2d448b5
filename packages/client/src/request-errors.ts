// The two ways in which a request fails: the service answers with a problem, or there is no usable
// answer.
import type { Problem, ProblemCode, ValidationError } from './contract.ts'

/** A message names at most this number of validation errors. `errors` has all of them. */
const NAMED_ERRORS = 3

/** The service, or a proxy in front of it, refused a request. The message is for people. */
export class SluiceProblem extends Error {
  override readonly name = 'SluiceProblem'
  readonly status: number
  /**
   * The code of the problem. Undefined if something other than Sluice answered. A newer service may
   * use other codes.
   */
  readonly code: ProblemCode | undefined
  /** The errors of the request, each with a JSON Pointer. Empty unless the request was invalid. */
  readonly errors: readonly ValidationError[]
  /** The answer's X-Request-Id, by which the service's operators find the request. */
  readonly requestId: string | undefined
  /** The id of the request's job, for `waitForJob`. */
  readonly jobId: string | undefined
  /** The service asks to wait this number of seconds before the next attempt. */
  readonly retryAfter: number | undefined
  /** The whole body of the answer (RFC 9457). */
  readonly problem: Problem | undefined

  constructor(
    status: number,
    problem?: Problem,
    headers: { requestId?: string | null; retryAfter?: number | undefined } = {},
  ) {
    super(describe(status, problem))
    this.status = status
    this.problem = problem
    this.code = problem?.code
    this.errors = problem?.errors ?? []
    this.requestId = problem?.requestId ?? headers.requestId ?? undefined
    this.jobId = problem?.jobId
    this.retryAfter = headers.retryAfter
  }
}

/** There was no readable answer, and the request may have been accepted. `cause` has the reason. */
export class SluiceUnreachable extends Error {
  override readonly name = 'SluiceUnreachable'
}

function describe(status: number, problem: Problem | undefined): string {
  if (problem === undefined)
    return `The answer has the status ${status}, and is not from Sluice's API. Check the URL.`
  const messages = problem.errors?.slice(0, NAMED_ERRORS).map(({ message }) => message) ?? []
  return [`${problem.detail} (${status} ${problem.code})`, ...messages].join(' ')
}

/** Reads the error of an answer whose status is not 200 to 299. */
export async function problemOf(response: Response): Promise<SluiceProblem> {
  const headers = {
    requestId: response.headers.get('x-request-id'),
    retryAfter: retryAfterOf(response.headers),
  }
  const body = await response.json().catch(() => undefined)
  return new SluiceProblem(response.status, isProblem(body) ? body : undefined, headers)
}

function isProblem(body: unknown): body is Problem {
  const { code, detail, errors = [] } = Object(body)
  const areErrors =
    Array.isArray(errors) && errors.every((error) => typeof Object(error).message === 'string')
  return typeof code === 'string' && typeof detail === 'string' && areErrors
}

/**
 * Returns the seconds of Retry-After. Returns undefined if it is a date, which a proxy may send,
 * but Sluice does not.
 */
function retryAfterOf(headers: Headers): number | undefined {
  const text = headers.get('retry-after') ?? ''
  return /^\d+$/.test(text) ? Number(text) : undefined
}
