// The names of a queue's keys in Redis. Only this folder has BullMQ's keys, hash fields, marker and lock.
import { Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import type { IngestJob, Lane } from '../job/job.ts'

/** The names of one queue's keys. All share a hash tag: a cluster keeps them on one node, for scripts. */
export interface QueueKeys {
  /** BullMQ's own prefix. */
  prefix: string
  /** The beginning of Sluice's own keys. */
  base: string
  /** BullMQ's name of each lane's queue. */
  queues: Readonly<Record<Lane, string>>
  /** The beginning of BullMQ's keys of each lane. `jobs.bulk + id` is a job's hash. */
  jobs: Readonly<Record<Lane, string>>
  /** Each lane's marker: it is set while jobs wait, and wakes blocked workers. */
  markers: Readonly<Record<Lane, string>>
  /** Each lane's failed jobs, a sorted set by the time of failure (ms). */
  failed: Readonly<Record<Lane, string>>
}

/** Names the keys of a queue. */
export function queueKeys(queue: string): QueueKeys {
  const prefix = `{${queue}}`
  const queues = { interactive: queue, bulk: `${queue}-bulk` }
  const jobs = { interactive: `${prefix}:${queues.interactive}:`, bulk: `${prefix}:${queues.bulk}:` }
  const markers = { interactive: `${jobs.interactive}marker`, bulk: `${jobs.bulk}marker` }
  const failed = { interactive: `${jobs.interactive}failed`, bulk: `${jobs.bulk}failed` }
  return { prefix, base: `${prefix}:sluice:`, queues, jobs, markers, failed }
}

/** BullMQ's own view of both lanes. */
export type Queues = Readonly<Record<Lane, Queue<IngestJob>>>

/** The most events that BullMQ keeps of each lane. An event may have the reason of a failure. */
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
