// The names of a queue's keys in Redis, and BullMQ's own view of a lane and of a job without its payload. This folder
// has most of what Sluice knows of BullMQ's keys, hash fields, marker and lock.
import { Job, Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import { type IngestJob, JOB_OPTIONS, type Lane, TRIES, triesShown } from '../job/job.ts'

export type QueueKeys = ReturnType<typeof queueKeys>

/** Names the keys of a queue. All share a hash tag: a cluster then keeps them on one node, as scripts require. */
export function queueKeys(queue: string) {
  /** BullMQ's own prefix. */
  const prefix = `{${queue}}`
  /** BullMQ's name of each lane's queue. */
  const queues = { interactive: queue, bulk: `${queue}-bulk` }
  /** The beginning of BullMQ's keys of each lane. `jobs.bulk + id` is a job's hash. */
  const jobs = { interactive: `${prefix}:${queues.interactive}:`, bulk: `${prefix}:${queues.bulk}:` }
  /** Each lane's marker: it is set while jobs wait, and wakes blocked workers. */
  const markers = { interactive: `${jobs.interactive}marker`, bulk: `${jobs.bulk}marker` }
  /** Each lane's failed jobs, a sorted set by the time of failure (ms). */
  const failed = { interactive: `${jobs.interactive}failed`, bulk: `${jobs.bulk}failed` }
  /** `base` is the beginning of Sluice's own keys. */
  return { prefix, base: `${prefix}:sluice:`, queues, jobs, markers, failed }
}

/** BullMQ's own view of both lanes. */
export type Queues = Readonly<Record<Lane, Queue<IngestJob>>>

/** The most events that BullMQ keeps of each lane. An event may contain the reason of a failure. */
const EVENTS_KEPT = 1_000

/** Opens BullMQ's own view of a lane. */
export function openQueue(keys: QueueKeys, lane: Lane, redis: Redis): Queue<IngestJob> {
  const queue = new Queue<IngestJob>(keys.queues[lane], {
    connection: redis,
    prefix: keys.prefix,
    skipVersionCheck: true,
    // BullMQ's events serve only people who look for a fault.
    streams: { events: { maxLen: EVENTS_KEPT } },
  })
  queue.on('error', () => {}) // the connection's own listener logs it
  return queue
}

const TEXTS = ['name', 'failedReason', 'stacktrace', 'atm']
const NUMBERS = ['delay', 'timestamp', 'ats', 'finishedOn', 'processedOn']

/** Returns a job as BullMQ does, but with a note in place of its payload: never write the job back. */
export async function readShownJob(queue: Queue, redis: Redis, id: string): Promise<Job | undefined> {
  const fields = await redis.hmget(queue.toKey(id), ...TEXTS, ...NUMBERS)
  const [name, failedReason, stacktrace, tries, ...numbers] = fields
  if (!name) return undefined
  const [delay = 0, timestamp = 0, attemptsStarted = 0, finishedOn = 0, processedOn = 0] = numbers.map(Number)
  const note = 'The payload is not shown here.'
  const opts = { ...JSON.parse(JOB_OPTIONS), attempts: TRIES }
  const content = { id, name, data: JSON.stringify(note), opts, returnvalue: '', priority: 0, progress: 0 }
  const times = { delay, timestamp, finishedOn, processedOn, attemptsStarted }
  const failure = { failedReason: failedReason ?? '', stacktrace: stacktrace ?? '[]' }
  return Job.fromJSON(
    queue,
    { ...content, ...times, ...failure, attemptsMade: triesShown(tries), stalledCounter: 0 },
    id,
  )
}
