// Errors of enqueueing: refused (with the time after which to try again), or outcome unknown.
import type { Load, Quota, Totals } from './queue-load.ts'

/** Redis can't be reached, or refused the command. A job was not accepted and never will be. */
export class QueueUnavailableError extends Error {
  override name = 'QueueUnavailableError'

  constructor(cause?: unknown) {
    super('the queue cannot be reached', { cause })
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
  override name = 'QueueFullError'
  /** `full`: the whole queue; `share`: the tenant's share of it. */
  readonly bound: 'full' | 'share'
  /** After how many seconds, from 1 to 60, to try again. */
  readonly retryAfter: number

  constructor(bound: QueueFullError['bound'], retryAfter: number) {
    super(bound === 'full' ? 'the queue is full' : "the tenant's share of the queue is used up")
    this.bound = bound
    this.retryAfter = retryAfter
  }
}

/** The key has used up its quota. The job was not accepted and never will be. */
export class RateLimitedError extends Error {
  override name = 'RateLimitedError'
  readonly quota: Quota
  /** After how many seconds the key may post again. */
  readonly retryAfter: number

  /** @param level of the key's bucket, which is not above zero. */
  constructor(quota: Quota, level: number) {
    super('the key has used up its quota')
    this.quota = quota
    this.retryAfter = Math.max(1, Math.ceil(-level / quota.quotesPerSecond))
  }
}

/** The request's Idempotency-Key stands for another request. The job was not accepted and never will be. */
export class IdempotencyKeyReusedError extends Error {
  override name = 'IdempotencyKeyReusedError'
}

/**
 * Redis did not confirm a job in time. Either it was accepted before this error was thrown, and precedes everything
 * that is enqueued afterwards, or it never will be.
 */
export class AcceptanceUnknownError extends Error {
  override name = 'AcceptanceUnknownError'
  readonly jobId: string

  constructor(jobId: string) {
    super('Redis did not confirm the job in time')
    this.jobId = jobId
  }
}

/** Returns the error for an outcome that does not depend on the load: see enqueue.lua. */
export function otherRefusal(outcome: string): Error {
  if (outcome === 'reused') return new IdempotencyKeyReusedError('the key stands for another request')
  return new QueueUnavailableError() // late
}

/** Memory becomes free as jobs complete. In seconds. */
const OUT_OF_MEMORY_S = 10

/** Makes a refusal of a reply of Redis that is an error: the script has not run. */
export function refusalByRedis(error: Error): QueueFullError | QueueUnavailableError {
  if (error.message.startsWith('OOM')) return new QueueFullError('full', OUT_OF_MEMORY_S)
  return new QueueUnavailableError(error)
}

/** The totals of a queue at a time on the monotonic clock, in ms. */
export interface Sample extends Totals {
  at: number
}

/** Callers come again when this part of a bound is used. At the bound itself, one caller would get in. */
const ROOM = 0.9
const MOST_SECONDS = 60
/** A shorter span of samples shows too little. */
const LEAST_SPAN_MS = 500

/**
 * Refuses a job because of the load of the queue or of a tenant, whose bounds are `most`. The load drains by `samples` of
 * the last seconds or, if they show too little, by `capacity` threads a second.
 */
export function queueFull(
  bound: QueueFullError['bound'],
  { threads, bytes, interactive }: Load,
  most: Load,
  samples: readonly Sample[],
  capacity: number,
): QueueFullError {
  const perSecond = drained(samples, 'drained') ?? capacity
  const bytesPerSecond = perSecond * (bytes / Math.max(threads, 1))
  const seconds = [
    (threads - ROOM * most.threads) / perSecond,
    (bytes - ROOM * most.bytes) / bytesPerSecond,
    (interactive - ROOM * most.interactive) / (drained(samples, 'drainedInteractive') ?? capacity),
  ]
  return new QueueFullError(bound, retryAfter(Math.max(...seconds.filter((one) => !Number.isNaN(one)))))
}

/** Returns how many threads a second left the load. Undefined before that was measured. */
function drained([first, ...others]: readonly Sample[], field: 'drained' | 'drainedInteractive'): number | undefined {
  const last = others.at(-1)
  if (first === undefined || last === undefined || last.at - first.at < LEAST_SPAN_MS) return undefined
  return ((last[field] - first[field]) / (last.at - first.at)) * 1000
}

/** Whole seconds from 1 to 60. They differ between callers, so that not all come again at once. */
function retryAfter(seconds: number): number {
  if (seconds >= MOST_SECONDS) return Math.round(MOST_SECONDS - Math.random() * 10)
  return Math.min(MOST_SECONDS, Math.max(1, Math.ceil(seconds * (1 + Math.random() / 4))))
}
