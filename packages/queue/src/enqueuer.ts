import type { Thread } from '@sluice/contract'
import { Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import { v7 as uuidv7 } from 'uuid'
import { type IngestJob, jobName, jobOptions } from './ingest-job.ts'
import type { QueueKeys } from './queue-keys.ts'
import { QueueUnavailableError } from './queue-unavailable-error.ts'
import { createStamps } from './stamps.ts'

/** A request on its way into the queue. */
export interface ToEnqueue {
  tenant: string
  requestId: string
  told: boolean
  replyTo?: string
  thread: Thread
}

/** Puts requests into the queue. */
export interface Enqueuer {
  queue: Queue<IngestJob>
  /**
   * Gives a request its place in the order of acceptance and adds its job.
   *
   * @param id the job's id, from `newJobId`, so that who waits for it can be there first.
   * @throws {QueueUnavailableError}
   */
  enqueue(id: string, request: ToEnqueue): Promise<void>
  close(): Promise<void>
}

/** Sortable by time (UUIDv7, RFC 9562), and not guessable. */
export function newJobId(): string {
  return uuidv7()
}

/** @param redis an impatient connection: see `connectImpatient`. */
export function createEnqueuer(name: string, keys: QueueKeys, redis: Redis): Enqueuer {
  const queue = new Queue<IngestJob>(name, { connection: redis, prefix: keys.prefix, skipVersionCheck: true })
  queue.on('error', () => {}) // the connection's own listener logs it
  const takeStamp = createStamps(redis, keys)
  async function add(id: string, request: ToEnqueue): Promise<void> {
    const stamp = await takeStamp()
    await queue.add(jobName(request.thread), { ...request, stamp }, jobOptions(id))
  }
  return {
    queue,
    async enqueue(id, request) {
      if (redis.status !== 'ready') throw new QueueUnavailableError()
      try {
        await inTime(add(id, request))
      } catch (error) {
        throw new QueueUnavailableError(error)
      }
    },
    close: () => queue.close(),
  }
}

/** Callers hear within two seconds that Redis hangs. */
const ENQUEUE_MS = 1_800

async function inTime(adding: Promise<void>): Promise<void> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`Redis did not answer within ${ENQUEUE_MS} ms`)), ENQUEUE_MS)
  try {
    await Promise.race([adding, late])
  } finally {
    clearTimeout(timer)
  }
}
