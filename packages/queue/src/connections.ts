// Connections to Redis: failing fast or retrying, BullMQ's queue and worker on them, and the one setting that Redis must have.
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

/** Connects for callers that can't wait: commands fail at once while Redis is away, and within 1.5 s while it hangs. */
export function connectFailFast(url: string, onError: OnRedisError): Redis {
  return connect(
    url,
    {
      enableOfflineQueue: false,
      // A command that is sent again could be a job that its caller was told was refused.
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 1,
      commandTimeout: 1_500,
      connectTimeout: 1_500,
    },
    onError,
  )
}

/** Connects for work that can wait: commands are retried until Redis is back, and may block. */
export function connectRetrying(url: string, onError: OnRedisError): Redis {
  return connect(url, { maxRetriesPerRequest: null }, onError)
}

function connect(url: string, options: Omit<RedisOptions, 'replyMapping'>, onError: OnRedisError): Redis {
  const redis = new Redis(url, { ...options, retryStrategy: backoff, reconnectOnError })
  redis.on('error', onError)
  return redis
}

/** Opens BullMQ's own view of a lane. */
export function openQueue(keys: QueueKeys, lane: Lane, redis: Redis): Queue<IngestJob> {
  const queue = new Queue<IngestJob>(keys.queues[lane], {
    connection: redis,
    prefix: keys.prefix,
    skipVersionCheck: true,
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
    super('the queue can not be reached', { cause })
    this.name = 'QueueUnavailableError'
  }
}

/** Redis would evict jobs when its memory is full. */
export class EvictionPolicyError extends Error {
  constructor(policy: string) {
    super(
      `Redis runs with maxmemory-policy ${policy} and would throw accepted jobs away when its memory is full. ` +
        'Set it to noeviction: `redis-cli config set maxmemory-policy noeviction`, and `maxmemory-policy noeviction` in redis.conf.',
    )
    this.name = 'EvictionPolicyError'
  }
}

/**
 * Refuses a Redis that evicts. Does not wait for a Redis that is away: each time the connection is ready, the policy is checked.
 *
 * @throws {EvictionPolicyError} if Redis is there at the start. Later the error is an unhandled rejection, which ends the process.
 */
export async function watchEvictionPolicy(redis: Redis): Promise<void> {
  const started = Promise.withResolvers<void>()
  let isStarted = false
  redis.on('ready', () => {
    requireNoEviction(redis).then(started.resolve, (error) => {
      if (!(error instanceof EvictionPolicyError)) return started.resolve()
      if (isStarted) throw error
      started.reject(error)
    })
  })
  redis.once('error', () => started.resolve())
  await started.promise
  isStarted = true
}

/** Reads the policy by INFO, which managed Redis allows even if it refuses CONFIG. @throws {EvictionPolicyError} */
async function requireNoEviction(redis: Redis): Promise<void> {
  const policy = /^maxmemory_policy:(\S+)/m.exec(await redis.info('memory'))?.[1]
  if (policy !== undefined && policy !== 'noeviction') throw new EvictionPolicyError(policy)
}
