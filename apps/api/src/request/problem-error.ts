// Every problem that the API reports: the error classes, their texts, and the mapping from errors of the packages.
import { randomInt } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import {
  createProblem,
  type Fault,
  type FaultCode,
  NEWLINES,
  type Problem,
  type ProblemCode,
  type ProblemMembers,
  type Warning,
} from '@sluice/contract'
import {
  AcceptanceUnknownError,
  IdempotencyKeyReusedError,
  OperationsFullError,
  QueueFullError,
  QueueUnavailableError,
  RateLimitedError,
} from '@sluice/queue'
import type { KeyRole } from '@sluice/store/keys'
import { StoreAwayError } from '@sluice/store/read'

type Headers = Readonly<Record<string, string>>

/** A request ends with this problem. */
export class ProblemError extends Error {
  readonly code: ProblemCode
  readonly members: Omit<ProblemMembers, 'instance' | 'requestId'>
  readonly headers: Headers

  constructor(code: ProblemCode, members: ProblemError['members'], headers: Headers = {}) {
    super(members.detail)
    this.name = 'ProblemError'
    this.code = code
    this.members = members
    this.headers = headers
  }
}

/** The caller hung up, or does not read its answer: nobody reads an answer any more. */
export class CallerGoneError extends Error {}

const after = (seconds: number): Headers => ({ 'retry-after': String(seconds) })

/** The problems that say the same each time: their details, and their headers. */
const FIXED = {
  expectation_unknown: ['Expect may only be 100-continue.', { connection: 'close' }],
  keys_unavailable: ['The key cannot be checked right now. Try again in a moment.', after(2)],
  route_unknown: ['This path does not exist.'],
  job_unknown: ['No job has this id, or it finished too long ago.'],
  // A source of another tenant is unknown too.
  source_unknown: ['No source of this name or id is stored.'],
  import_unknown: ['No import has this id, or it finished too long ago.'],
  operation_unknown: ['No operation has this id, or it was completed too long ago.'],
  charset_unsupported: ['Text is UTF-8: send charset=utf-8 or no charset at all.'],
  encoding_unsupported: [
    'Send Content-Encoding gzip, br, deflate or zstd, or none.',
    { 'accept-encoding': 'gzip, br, deflate, zstd' },
  ],
  idempotency_key_reused: [
    'This Idempotency-Key was used for another request in the last 24 hours: another body, or a caller that waits in place of one that does not. Send a new key with a new request. Nothing was accepted.',
  ],
  queue_unavailable: ['The queue cannot be reached right now. Send the request again; that is safe.', after(1)],
  store_unavailable: ['The store cannot be reached right now, or takes too long. Send the request again.', after(2)],
  operations_full: ['Too many operations wait for their turn. Try again when one of them is completed.', after(10)],
  // Another replica can accept the request.
  stopping: ['The service stops; send the request again.', after(1)],
  internal: ['Something went wrong on our side. The request id identifies it.'],
} as const satisfies Partial<Record<ProblemCode, readonly [detail: string, headers?: Headers]>>

/** A problem that says the same each time. */
export function fixedProblem(code: keyof typeof FIXED): ProblemError {
  const [detail, headers] = FIXED[code]
  return new ProblemError(code, { detail }, headers)
}

/** The problem that an error means to the caller. Undefined if the error is a fault of our own. */
export function asProblem(error: unknown): ProblemError | undefined {
  if (error instanceof ProblemError) return error
  if (error instanceof QueueUnavailableError) return fixedProblem('queue_unavailable')
  if (error instanceof QueueFullError) return queueFull(error)
  if (error instanceof StoreAwayError) return fixedProblem('store_unavailable')
  if (error instanceof OperationsFullError) return fixedProblem('operations_full')
  if (error instanceof RateLimitedError) return rateLimited(error)
  if (error instanceof AcceptanceUnknownError) return acceptanceUnknown(error.jobId)
  if (error instanceof IdempotencyKeyReusedError) return fixedProblem('idempotency_key_reused')
  // Express throws it for a path that can't be decoded. Nothing else here does.
  if (error instanceof URIError) return fixedProblem('route_unknown')
  return undefined
}

/** The body that reports a problem. */
export function problemBody({ code, members }: ProblemError, instance: string | undefined, requestId: string): Problem {
  return createProblem(code, { ...members, ...(instance !== undefined && { instance }), requestId })
}

/** The message breaks a rule of HTTP. */
export function notHttp(message: string): ProblemError {
  return bodyUnreadable('not_http', message)
}

export function apiKeyInvalid({ authorization = '', ...headers }: IncomingHttpHeaders): ProblemError {
  const isMissing = headers['x-api-key'] === undefined
  // Many APIs expect a bearer token. The key itself is never repeated.
  const isElsewhere = isMissing && /\bslc_/.test(authorization)
  const where = isElsewhere ? ' Send the key in x-api-key, not in Authorization.' : ''
  const fault = isMissing ? `The header x-api-key is missing.${where}` : 'The key in x-api-key is not valid.'
  return new ProblemError('api_key_invalid', { detail: fault })
}

/** The key is valid, but its role may not use this path. */
export function roleRefused(allowed: KeyRole): ProblemError {
  if (allowed === 'operator')
    return new ProblemError('operator_only', { detail: 'This path needs the key of an operator.' })
  const detail = 'This path needs the key of an importer: the key of an operator has no tenant.'
  return new ProblemError('importer_only', { detail })
}

export function methodNotAllowed(allow: string): ProblemError {
  return new ProblemError('method_not_allowed', { detail: `This path accepts ${allow}.` }, { allow })
}

export function mediaTypeUnsupported(input: string, accepted: readonly string[]): ProblemError {
  const fault = input === '' ? 'The header Content-Type is missing.' : 'This Content-Type is not supported.'
  return new ProblemError('media_type_unsupported', { detail: `${fault} Send ${accepted.join(' or ')}.` })
}

/** The limits of a body, as `GET /limits` names them. */
export type SizeLimit = 'bodyBytes' | 'importBytes'

/** The body exceeds a limit, as sent or inflated. */
export function bodyTooLarge(bytes: number, limit: SizeLimit): ProblemError {
  const detail = `The body may have at most ${bytes} bytes (${limit}), compressed and inflated.`
  return new ProblemError('body_too_large', { detail })
}

/** A line of an import is longer than a body of `POST /sources` may be. */
export function lineTooLong(bytes: number): ProblemError {
  return new ProblemError('body_too_large', {
    detail: `A line may have at most ${bytes} bytes (bodyBytes). ${NEWLINES}`,
  })
}

/** The text of the whole body can't be read. */
export function bodyUnreadable(code: FaultCode, message: string): ProblemError {
  return new ProblemError('body_unreadable', ofWholeBody(code, message))
}

function ofWholeBody(code: FaultCode, message: string): ProblemError['members'] {
  return { detail: message, errors: [{ pointer: '', code, message }], total: 1 }
}

/** The problems of a text that could not be read as JSON. */
const UNREADABLE: ReadonlyMap<FaultCode, ProblemCode> = new Map([
  ['not_decodable', 'body_unreadable'],
  ['not_json', 'json_invalid'],
])

type Refused = { errors: Fault[]; total: number; warnings?: Warning[] }

/** The text of a body, of an item or of a line is no valid thread. */
export function requestInvalid({ errors, total, warnings }: Refused): ProblemError {
  const [first] = errors
  if (total === 1 && first?.pointer === '')
    return new ProblemError(UNREADABLE.get(first.code) ?? 'request_invalid', ofWholeBody(first.code, first.message))
  const detail = total === 1 ? 'The request has a fault; see errors.' : `The request has ${total} faults; see errors.`
  return new ProblemError('request_invalid', { detail, errors, total, ...(warnings !== undefined && { warnings }) })
}

/** The value of Idempotency-Key can't be read, or the header does not belong here. */
export function idempotencyKeyInvalid(message: string): ProblemError {
  return new ProblemError('idempotency_key_invalid', ofWholeBody('header_invalid', message))
}

/** The process has no memory left for the request, its event loop lags, or it has too many connections. */
export function overloaded(): ProblemError {
  const detail = 'The service has more to do than it can right now. Send the request again; that is safe.'
  return new ProblemError('overloaded', { detail }, { 'retry-after': String(randomInt(1, 4)) })
}

/** The queue accepts no more, or no more of this tenant. */
function queueFull({ bound, retryAfter }: QueueFullError): ProblemError {
  const headers = { 'retry-after': String(retryAfter) }
  const again = 'The request was not accepted; send it again later.'
  if (bound === 'full') return new ProblemError('queue_full', { detail: `The queue is full. ${again}` }, headers)
  return new ProblemError('tenant_share', { detail: `Too much of this tenant is in the queue. ${again}` }, headers)
}

/** The name of a key's quota in headers and problems. */
export const QUOTA_POLICY = 'quotes'

/** The key has used up its quota. */
function rateLimited({ quota, retryAfter }: RateLimitedError): ProblemError {
  const detail = `The key may post ${quota.quotesPerSecond} quotes a second. The request was not accepted; send it again later.`
  const members = { detail, 'violated-policies': [QUOTA_POLICY] }
  return new ProblemError('rate_limited', members, { 'retry-after': String(retryAfter) })
}

/** Redis did not confirm the request in time. */
function acceptanceUnknown(jobId: string): ProblemError {
  const detail =
    'Redis did not confirm this request. Either it was accepted before this answer and precedes everything posted after it, or it never will be. ' +
    'Posting the same again is safe unless something newer was posted for this source.'
  return new ProblemError('acceptance_unknown', { detail, jobId }, { location: `/jobs/${jobId}` })
}

/** The job of a caller that waits is not done by the deadline. */
export function jobPending(jobId: string): ProblemError {
  const detail = `The job goes on; see /jobs/${jobId}. Posting the same again is safe unless something newer was posted for this source.`
  return new ProblemError('job_pending', { detail, jobId }, { location: `/jobs/${jobId}` })
}

/** As `jobPending`, for an item of an import. Its job carries other items too, so only operators can look it up. */
export function itemPending(jobId: string): ProblemError {
  const detail = 'The job goes on. Posting the same again is safe unless something newer was posted for this source.'
  return new ProblemError('job_pending', { detail, jobId })
}

/** A job failed for good. The reason is for the operators, who find it by the job's id. */
export function jobFailed(jobId?: string): ProblemError {
  const detail = 'The job failed for good and is kept for the operators, who can fix the cause and run it again.'
  return new ProblemError('job_failed', jobId === undefined ? { detail } : { detail, jobId })
}
