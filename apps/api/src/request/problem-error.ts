// All problems that the API reports: the error classes, their texts, and the mapping from other
// packages' errors.
import { randomInt } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type {
  Problem,
  ProblemCode,
  ProblemMembers,
  ValidationError,
  ValidationErrorCode,
  Warning,
} from '@sluice/contract'
import { createProblem, NEWLINES, refuseField } from '@sluice/contract'
import { OperationsFullError, OperatorOnlyError, SuppressionsFullError } from '@sluice/operations'
import * as queue from '@sluice/queue'
import { CommandFailedError } from '@sluice/store/read'

type Headers = Readonly<Record<string, string>>

const after = (seconds: number): Headers => ({ 'retry-after': String(seconds) })

/** The headers of a problem, unless its creator passes other headers. */
const HEADERS: Partial<Record<ProblemCode, Headers>> = {
  expectation_unknown: { connection: 'close' },
  transfer_coding_unsupported: { connection: 'close' },
  encoding_unsupported: { 'accept-encoding': 'gzip, br, deflate, zstd' },
  keys_unavailable: after(2),
  queue_unavailable: after(1),
  store_unavailable: after(2),
  operations_full: after(10),
  // Another replica can accept the request after a second.
  stopping: after(1),
}

/** `members.detail` replaces the default detail of the problem's code. */
export class ProblemError extends Error {
  readonly code: ProblemCode
  readonly members: Omit<ProblemMembers, 'instance' | 'requestId'>
  readonly headers: Headers

  constructor(
    code: ProblemCode,
    members: ProblemError['members'] = {},
    headers: Headers = HEADERS[code] ?? {},
  ) {
    super(members.detail ?? code)
    this.name = 'ProblemError'
    this.code = code
    this.members = members
    this.headers = headers
  }
}

/** The caller hung up, or does not read its answer. No problem is sent. */
export class CallerGoneError extends Error {}

const SUPPRESSIONS_FULL = refuseField(
  'suppress',
  'must be false: your tenant has 100,000 suppressions. End some first.',
)

/**
 * Returns the problem by which an error is reported to the caller. Returns undefined if the API is
 * at fault.
 */
export function asProblem(error: unknown): ProblemError | undefined {
  if (error instanceof ProblemError) return error
  if (error instanceof queue.QueueUnavailableError)
    return new ProblemError('queue_unavailable', refusedCommands(error))
  if (error instanceof queue.QueueFullError)
    return new ProblemError(
      error.bound === 'full' ? 'queue_full' : 'tenant_share',
      {},
      after(error.retryAfter),
    )
  if (error instanceof CommandFailedError) return new ProblemError('store_unavailable')
  if (error instanceof OperatorOnlyError) return new ProblemError('operator_only')
  if (error instanceof OperationsFullError) return new ProblemError('operations_full')
  if (error instanceof SuppressionsFullError) return requestInvalid(SUPPRESSIONS_FULL)
  if (error instanceof queue.RateLimitedError) return rateLimited(error)
  if (error instanceof queue.AcceptanceUnknownError)
    return jobUndecided('acceptance_unknown', error.jobId)
  if (error instanceof queue.IdempotencyKeyReusedError)
    return new ProblemError('idempotency_key_reused')
  // Express throws a URIError for a path that can't be decoded. Nothing else here throws one.
  if (error instanceof URIError) return new ProblemError('route_unknown')
  return undefined
}

/** Redis can't write to its disk. The error says why, for example `No space left on device`. */
const CANNOT_PERSIST = /^MISCONF (.*?)(?: script: .*)?$/
const LACKS_RIGHTS = /^(?:NOPERM|ERR ACL failure) /

function refusedCommands({ cause }: queue.QueueUnavailableError): ProblemError['members'] {
  const { message } = cause instanceof Error ? cause : { message: '' }
  const [, reason] = CANNOT_PERSIST.exec(message) ?? []
  if (reason !== undefined) return { detail: `Redis refuses writes: ${reason}` }
  // The message names a user of Redis, which callers must not see.
  return LACKS_RIGHTS.test(message)
    ? { detail: 'Redis refuses commands (NOPERM). The log of the API says which.' }
    : {}
}

/** The body that reports a problem. */
export function problemBody(
  { code, members }: ProblemError,
  instance: string | undefined,
  requestId: string,
): Problem {
  return createProblem(code, { ...members, ...(instance !== undefined && { instance }), requestId })
}

/** The key is unknown or missing, or can't be checked. */
export function keyRefused(
  outcome: 'unknown' | 'unavailable',
  { authorization = '', ...headers }: IncomingHttpHeaders,
): ProblemError {
  if (outcome === 'unavailable') return new ProblemError('keys_unavailable')
  const { 'x-api-key': key } = headers
  if (key !== undefined) {
    const reason =
      key === ''
        ? 'The header x-api-key is empty.'
        : 'The key in x-api-key is unknown, revoked or expired. An operator creates keys with sluice keys create.'
    return new ProblemError('api_key_invalid', { detail: reason })
  }
  // Many APIs expect a bearer token, so callers may send the key in Authorization. The answer never
  // repeats the key.
  const where = /\bslc_/.test(authorization)
    ? ' Send the key in x-api-key, not in Authorization.'
    : ''
  return new ProblemError('api_key_invalid', { detail: `The header x-api-key is missing.${where}` })
}

/** The limits of a body, as `GET /limits` names them. */
export type SizeLimit = 'bodyBytes' | 'importBytes'

/** The body exceeds a limit, as sent or inflated. */
export function bodyTooLarge(bytes: number, limit: SizeLimit): ProblemError {
  const detail = `The body may have at most ${bytes} bytes (${limit}), compressed and inflated.`
  return new ProblemError('body_too_large', { detail })
}

/** A line of an import is longer than the limit of a body of `POST /sources`. */
export function lineTooLong(bytes: number): ProblemError {
  const detail = `A line may have at most ${bytes} bytes (bodyBytes). ${NEWLINES}`
  return new ProblemError('body_too_large', { detail })
}

/** The message, or its whole body, can't be read. */
export function bodyUnreadable(code: ValidationErrorCode, message: string): ProblemError {
  return new ProblemError('body_unreadable', ofWholeBody(code, message))
}

function ofWholeBody(code: ValidationErrorCode, message: string): ProblemError['members'] {
  return { detail: message, errors: [{ pointer: '', code, message }], total: 1 }
}

/** The problems of a text that could not be read as JSON. */
const UNREADABLE: Partial<Record<ValidationErrorCode, ProblemCode>> = {
  not_decodable: 'body_unreadable',
  not_json: 'json_invalid',
}

type InvalidRequest = { errors: ValidationError[]; total: number; warnings?: Warning[] }

/** A body, an item, a line or a query breaks a rule. */
export function requestInvalid({ errors, total, warnings }: InvalidRequest): ProblemError {
  const [first] = errors
  if (total === 1 && first?.pointer === '')
    return new ProblemError(
      UNREADABLE[first.code] ?? 'request_invalid',
      ofWholeBody(first.code, first.message),
    )
  const detail =
    total === 1
      ? 'The request has a validation error: see errors.'
      : `The request has ${total} validation errors: see errors.`
  return new ProblemError('request_invalid', {
    detail,
    errors,
    total,
    ...(warnings !== undefined && { warnings }),
  })
}

/** The header Idempotency-Key can't be parsed, or this route does not accept it. */
export function idempotencyKeyInvalid(message: string): ProblemError {
  return new ProblemError('idempotency_key_invalid', ofWholeBody('header_invalid', message))
}

/**
 * The process lacks memory for the request, its event loop lags, or too many connections, reads or
 * searches are open.
 */
export function overloaded(detail?: string): ProblemError {
  return new ProblemError('overloaded', { ...(detail && { detail }) }, after(randomInt(1, 4)))
}

/** The name of a key's quota in headers and problems. */
export const QUOTA_POLICY = 'quotes'

/** The key has used up its quota. */
function rateLimited({ quota, retryAfter }: queue.RateLimitedError): ProblemError {
  const detail = `The key may post ${quota.quotesPerSecond} quotes a second. The request was not accepted; send it again later.`
  const members = { detail, 'violated-policies': [QUOTA_POLICY] }
  return new ProblemError('rate_limited', members, after(retryAfter))
}

/** The job is still being processed, or its acceptance is unknown. The caller can look it up. */
export function jobUndecided(
  code: 'job_pending' | 'acceptance_unknown',
  jobId: string,
): ProblemError {
  return new ProblemError(code, { jobId }, { location: `/jobs/${jobId}` })
}

/**
 * The same as `job_pending`, for an item of an import. It has no Location, because GET /jobs/{id}
 * finds only jobs of one thread.
 */
export function itemPending(jobId: string): ProblemError {
  const detail =
    'The job goes on. Posting the same again is safe unless something newer was posted for this source.'
  return new ProblemError('job_pending', { detail, jobId })
}

/** A job failed permanently. Only operators see the reason, which they find by the job's id. */
export function jobFailed(jobId?: string): ProblemError {
  return new ProblemError('job_failed', jobId === undefined ? {} : { jobId })
}
