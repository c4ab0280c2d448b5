// Defines callers of the queue, and the errors that refuse their jobs. After each of these errors
// except `AcceptanceUnknownError`, the job was not accepted and never will be.

export interface Quota {
  /** The public id of the key. */
  keyId: string
  quotesPerSecond: number
  /** The most quotes that may be posted in one moment after a pause. */
  burstQuotes: number
}

export interface Caller {
  tenant: string
  quota?: Quota
}

/** Redis can't be reached, or refused the command. */
export class QueueUnavailableError extends Error {
  override name = 'QueueUnavailableError'

  constructor(cause?: unknown) {
    super('the queue cannot be reached', { cause })
  }
}

/** Waits for a query to Redis. @throws {QueueUnavailableError} if it fails. */
export function orUnavailable<Result>(query: Promise<Result>): Promise<Result> {
  return query.catch((error) => {
    throw new QueueUnavailableError(error)
  })
}

/** The queue is full, or the tenant has used up its share of it. */
export class QueueFullError extends Error {
  override name = 'QueueFullError'
  readonly bound: 'full' | 'share'
  /** The caller should try again after this number of seconds, from 1 to 60. */
  readonly retryAfter: number

  constructor(bound: QueueFullError['bound'], retryAfter: number) {
    super(bound === 'full' ? 'the queue is full' : "the tenant's share of the queue is used up")
    this.bound = bound
    this.retryAfter = retryAfter
  }
}

/** The key has used up its quota. */
export class RateLimitedError extends Error {
  override name = 'RateLimitedError'
  readonly quota: Quota
  readonly retryAfter: number

  constructor(quota: Quota, level: number) {
    super('the key has used up its quota')
    this.quota = quota
    this.retryAfter = Math.max(1, Math.ceil(-level / quota.quotesPerSecond))
  }
}

/** The Idempotency-Key was used before, with another request. */
export class IdempotencyKeyReusedError extends Error {
  override name = 'IdempotencyKeyReusedError'
}

/**
 * Redis did not confirm a job in time. Either the job was accepted before this error was thrown,
 * and precedes everything that is enqueued afterwards, or it never will be accepted.
 */
export class AcceptanceUnknownError extends Error {
  override name = 'AcceptanceUnknownError'
  readonly jobId: string

  constructor(jobId: string, cause?: unknown) {
    super('Redis did not confirm the job in time', { cause })
    this.jobId = jobId
  }
}

/**
 * When Redis is out of memory, callers should try again after this time. Memory is freed as jobs
 * complete.
 */
const OUT_OF_MEMORY_S = 10

/** Redis names the script in an error of a command within a script. */
const WITHIN_SCRIPT = /user_script/
/**
 * Redis gives these errors only for the first write of a script, so the script wrote nothing. Redis
 * 6.2 puts other words before the code.
 */
const NOTHING_WRITTEN = /\b(OOM|READONLY|MISCONF|NOREPLICAS) /
const OUT_OF_MEMORY = /\bOOM /

/**
 * Converts Redis's error about a script to a refusal. Returns undefined if the script may have
 * written some of its data.
 */
export function refusalByRedis(error: Error): QueueFullError | QueueUnavailableError | undefined {
  if (WITHIN_SCRIPT.test(error.message) && !NOTHING_WRITTEN.test(error.message)) return undefined
  return OUT_OF_MEMORY.test(error.message)
    ? new QueueFullError('full', OUT_OF_MEMORY_S)
    : new QueueUnavailableError(error)
}
