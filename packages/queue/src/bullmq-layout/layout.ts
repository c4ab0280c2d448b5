// Names BullMQ's keys and hash fields, for code that reads them without a script.
import { Job, type JobsOptions, type Queue } from 'bullmq'
import type { Redis } from 'ioredis'

/** Names the keys of a queue of BullMQ. */
export function keysOf(prefix: string, queue: string) {
  const jobs = `${prefix}:${queue}:`
  return {
    /** The prefix of the queue's keys. `jobs + id` is a job's hash. */
    jobs,
    /** Set while jobs wait: it wakes blocked workers. */
    marker: `${jobs}marker`,
    /** The failed jobs, a sorted set by the time of failure (ms). */
    failed: `${jobs}failed`,
  }
}

/**
 * Reads a job and its state. Returns undefined if the queue does not have the job.
 * @param jobs the prefix of the queue's keys.
 */
export async function readJob(redis: Redis, jobs: string, id: string) {
  const [fields, lock, failedAt, dueAt] = await Promise.all([
    redis.hmget(
      jobs + id,
      'data',
      'name',
      'timestamp',
      'failedReason',
      'stacktrace',
      'atm',
      'processedOn',
      'progress',
    ),
    redis.get(`${jobs}${id}:lock`),
    redis.zscore(`${jobs}failed`, id),
    redis.zscore(`${jobs}delayed`, id),
  ])
  const [data, name, enqueuedAt, reason, stack, attempts, fetchedAt, progress] = fields
  if (!data && !name) return undefined
  return {
    data: data ?? '',
    name: name ?? '',
    /** Times are in ms since 1970. */
    enqueuedAt: Number(enqueuedAt),
    failedAt: failedAt === null ? undefined : Number(failedAt),
    reason: reason ?? '',
    /** The stacks of failed attempts, as JSON. */
    stack: stack ?? '[]',
    attempts: Number(attempts ?? 0),
    isActive: lock !== null,
    /** Whether the job waits for its next attempt. */
    isDelayed: dueAt !== null,
    /**
     * When it was last fetched; 0 if it was not fetched since it was added or last retried by hand.
     */
    fetchedAt: Number(fetchedAt ?? 0),
    progress: progress ?? '',
  }
}

const TEXTS = ['name', 'failedReason', 'stacktrace']
const NUMBERS = ['delay', 'timestamp', 'ats', 'atm', 'finishedOn', 'processedOn']

/**
 * Returns a job as BullMQ does, but with this payload and these options, and shows at most
 * `opts.attempts` attempts.
 */
export async function readWithoutData(
  queue: Queue,
  redis: Redis,
  id: string,
  data: string,
  opts: JobsOptions & { attempts: number },
): Promise<Job | undefined> {
  const fields = await redis.hmget(queue.toKey(id), ...TEXTS, ...NUMBERS)
  const [name, failedReason, stacktrace, ...numbers] = fields
  if (!name) return undefined
  const [
    delay = 0,
    timestamp = 0,
    attemptsStarted = 0,
    attempts = 0,
    finishedOn = 0,
    processedOn = 0,
  ] = numbers.map(Number)
  const fieldsOfBullmq = {
    id,
    name,
    data: JSON.stringify(data),
    opts,
    returnvalue: '',
    priority: 0,
    progress: 0,
    delay,
    timestamp,
    finishedOn,
    processedOn,
    attemptsStarted,
    attemptsMade: Math.min(attempts, opts.attempts),
    stalledCounter: 0,
    failedReason: failedReason ?? '',
    stacktrace: stacktrace ?? '[]',
  }
  return Job.fromJSON(queue, fieldsOfBullmq, id)
}
