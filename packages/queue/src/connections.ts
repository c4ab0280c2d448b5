// Connections to Redis: failing fast or retrying, and BullMQ's queue and worker on them.
import { Job, type MinimalJob, Queue, Worker } from 'bullmq'
import { Redis, type RedisOptions } from 'ioredis'
import type { QueueKeys } from './bullmq-layout/names.ts'
import { triesMade } from './fetch.ts'
import { FAILED_KEPT_S, type IngestJob, type Lane } from './job.ts'

/** Receives each error of a connection, which reconnects by itself. */
export type OnRedisError = (error: Error) => void

const backoff = (attempt: number) => Math.min(50 * 2 ** attempt, 500)

/** A replica that is no longer the primary refuses writes. Connecting again finds the new primary. */
const reconnectOnError = (error: Error): false | 2 => (error.message.startsWith('READONLY') ? 2 : false)

/**
 * A connection that owes a reply and is silent for so long is cut and made anew, in ms: a peer that is gone sends nothing, and TCP itself would notice
 * after a quarter of an hour. Where callers wait, it must be noticed soon; elsewhere a slow Redis is more likely.
 */
const SILENT_MS = { callersWait: 2_000, elsewhere: 10_000 }

/** Connects for callers that can't wait: commands fail at once while Redis is away, and within 1.5 s while it hangs. */
export function connectFailFast(url: string, onError: OnRedisError): Redis {
  const times = { commandTimeout: 1_500, connectTimeout: 1_500, socketTimeout: SILENT_MS.callersWait }
  // A command that is sent again could be a job whose caller got a refusal.
  const commands = { enableOfflineQueue: false, maxRetriesPerRequest: 1, autoResendUnfulfilledCommands: false }
  return connect(url, { ...commands, ...times }, onError)
}

/**
 * Connects for work that can wait: commands are retried until Redis is back.
 *
 * @param silentMs after so many ms without a reply that is due, the connection counts as dead. A command that blocks must do so for a shorter time.
 */
export function connectRetrying(url: string, onError: OnRedisError, silentMs = SILENT_MS.elsewhere): Redis {
  return connect(url, { maxRetriesPerRequest: null, socketTimeout: silentMs }, onError)
}

/** Resolves if Redis answers. Rejects at once without a connection. */
export async function pingRedis(redis: Redis): Promise<void> {
  if (redis.status !== 'ready') throw new Error('not connected to Redis')
  await redis.ping()
}

function connect(url: string, options: Omit<RedisOptions, 'replyMapping'>, onError: OnRedisError): Redis {
  const redis = new Redis(url, { ...options, retryStrategy: backoff, reconnectOnError })
  redis.on('error', onError)
  return redis
}

/** How many events BullMQ keeps of each lane. An event may hold the reason of a failure. */
const EVENTS_KEPT = 1_000

/** Opens BullMQ's own view of a lane. */
export function openQueue(keys: QueueKeys, lane: Lane, redis: Redis): Queue<IngestJob> {
  const queue = new Queue<IngestJob>(keys.queues[lane], {
    connection: redis,
    prefix: keys.prefix,
    skipVersionCheck: true,
    // Only people who look for a fault read BullMQ's events.
    streams: { events: { maxLen: EVENTS_KEPT } },
  })
  queue.on('error', () => {}) // the connection's own listener logs it
  return queue
}

/** How often each worker looks for jobs whose lock has expired. */
const STALLED_CHECK_MS = 2_000

/**
 * Opens BullMQ's own worker of a lane, which fetches nothing by itself. It handles the rare cases: retries, delays and stalled jobs.
 *
 * @param lockMs other workers fetch a killed worker's jobs within `lockMs + STALLED_CHECK_MS`.
 */
export function openWorker(
  keys: QueueKeys,
  lane: Lane,
  redis: Redis,
  lockMs: number,
  onError: OnRedisError,
): Worker<IngestJob> {
  const worker = new Worker<IngestJob>(keys.queues[lane], null, {
    connection: redis,
    prefix: keys.prefix,
    autorun: false,
    lockDuration: lockMs,
    stalledInterval: STALLED_CHECK_MS,
    // `triesMade` counts crashes: BullMQ counts a crash against every job that the worker had locked.
    maxStalledCount: Number.MAX_SAFE_INTEGER,
    settings: { backoffStrategy: delayBeforeNextTry },
    removeOnComplete: { count: 0 },
    removeOnFail: { age: FAILED_KEPT_S },
    skipVersionCheck: true,
  })
  worker.on('error', onError)
  return worker
}

/** Half a second, then twice as long each time, give or take a half, so that jobs that failed together are not retried together. In ms. */
function delayBeforeNextTry(_attempts: number, _type?: string, _error?: Error, job?: MinimalJob): number {
  const failed = job instanceof Job ? triesMade(job) : 0
  return 500 * 2 ** failed * (0.5 + Math.random())
}

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
