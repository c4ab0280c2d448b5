// The ways in which the queue refuses a job, and the one in which it can't tell.

/** Redis can't be reached, or refused the command. A job was not accepted and never will be. */
export class QueueUnavailableError extends Error {
  constructor(cause?: unknown) {
    super('the queue cannot be reached', { cause })
    this.name = 'QueueUnavailableError'
  }
}

/** Waits for a query to Redis. @throws {QueueUnavailableError} if it fails. */
export async function orUnavailable<Result>(query: Promise<Result>): Promise<Result> {
  try {
    return await query
  } catch (error) {
    throw new QueueUnavailableError(error)
  }
}

/** The queue is full, or the tenant has its share of it. The job was not accepted and never will be. */
export class QueueFullError extends Error {
  /** `full`: the whole queue; `share`: the tenant's share of it. */
  readonly bound: 'full' | 'share'
  /** After how many seconds, from 1 to 60, to try again. */
  readonly retryAfter: number

  constructor(bound: QueueFullError['bound'], retryAfter: number) {
    super(bound === 'full' ? 'the queue is full' : "the tenant's share of the queue is used up")
    this.name = 'QueueFullError'
    this.bound = bound
    this.retryAfter = retryAfter
  }
}

/** The quota of one API key. */
export interface Quota {
  /** The public id of the key. */
  keyId: string
  quotesPerSecond: number
  /** The most that may be posted at once after a pause, in quotes. */
  burstQuotes: number
}

/** The key has used up its quota. The job was not accepted and never will be. */
export class RateLimitedError extends Error {
  readonly quota: Quota
  /** After how many seconds the key may post again. */
  readonly retryAfter: number

  constructor(quota: Quota, retryAfter: number) {
    super('the key has used up its quota')
    this.name = 'RateLimitedError'
    this.quota = quota
    this.retryAfter = retryAfter
  }
}

/** The request's Idempotency-Key stands for another request. The job was not accepted and never will be. */
export class IdempotencyKeyReusedError extends Error {
  constructor() {
    super('the Idempotency-Key stands for another request')
    this.name = 'IdempotencyKeyReusedError'
  }
}

/**
 * Redis did not confirm a job in time. Either it was accepted before this error was thrown, and precedes everything that is enqueued afterwards, or it
 * never will be.
 */
export class AcceptanceUnknownError extends Error {
  readonly jobId: string

  constructor(jobId: string) {
    super('Redis did not confirm the job in time')
    this.name = 'AcceptanceUnknownError'
    this.jobId = jobId
  }
}
