import { randomUUID } from 'node:crypto'
import { Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import { createEnqueueJobs, type ToEnqueue } from './enqueue-jobs.ts'
import type { IngestJob, Lane } from './ingest-job.ts'
import type { QueueKeys } from './queue-keys.ts'
import { QueueUnavailableError } from './queue-unavailable-error.ts'

/** Puts threads into the queue. */
export interface Enqueuer {
  queues: Readonly<Record<Lane, Queue<IngestJob>>>
  /**
   * Gives threads their places in the order of acceptance and adds their job.
   *
   * @param id the job's id, from `newJobId`, so that who waits for it can be there first.
   * @throws {QueueUnavailableError}
   */
  enqueue(id: string, lane: Lane, job: ToEnqueue): Promise<void>
}

/** Sortable by time (UUIDv7, RFC 9562), and not guessable. */
export function newJobId(): string {
  const time = Date.now().toString(16).padStart(12, '0')
  // Node draws the randomness of many UUIDs at once, which is a tenth of what drawing it for each costs.
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}

/** @param redis an impatient connection: see `connectImpatient`. */
export function createEnqueuer(keys: QueueKeys, redis: Redis): Enqueuer {
  const queues = { waiting: openQueue(keys, 'waiting', redis), bulk: openQueue(keys, 'bulk', redis) }
  const enqueueJob = createEnqueueJobs(redis, keys)
  return {
    queues,
    async enqueue(id, lane, job) {
      if (redis.status !== 'ready') throw new QueueUnavailableError()
      try {
        await inTime(enqueueJob({ id, lane, job }))
      } catch (error) {
        throw new QueueUnavailableError(error)
      }
    },
  }
}

/** BullMQ's own view of a lane. */
export function openQueue(keys: QueueKeys, lane: Lane, redis: Redis): Queue<IngestJob> {
  const queue = new Queue<IngestJob>(keys.queues[lane], {
    connection: redis,
    prefix: keys.prefix,
    skipVersionCheck: true,
  })
  queue.on('error', () => {}) // the connection's own listener logs it
  return queue
}

/** Callers hear within two seconds that Redis hangs. */
const ENQUEUE_MS = 1_800

async function inTime(adding: Promise<unknown>): Promise<void> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`Redis did not answer within ${ENQUEUE_MS} ms`)), ENQUEUE_MS)
  try {
    await Promise.race([adding, late])
  } finally {
    clearTimeout(timer)
  }
}
