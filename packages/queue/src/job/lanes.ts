// Names a queue's lanes and their keys in Redis, and opens BullMQ's own objects for them.
import { type Job, Queue, Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import { keysOf, readWithoutData } from '../bullmq-layout/layout.ts'
import { type IngestJob, isJobId, JOB_OPTIONS, type Lane, MAX_ATTEMPTS } from './job.ts'

export type QueueKeys = ReturnType<typeof queueKeys>

/**
 * Names the keys of a queue. All share a hash tag, so a cluster keeps them on one node, as scripts
 * require.
 */
export function queueKeys(queue: string) {
  /** BullMQ's own prefix. */
  const prefix = `{${queue}}`
  /** BullMQ's name of each lane's queue. */
  const queues = { interactive: queue, bulk: `${queue}-bulk` }
  const [interactive, bulk] = [keysOf(prefix, queues.interactive), keysOf(prefix, queues.bulk)]
  return {
    prefix,
    queues,
    /** The prefix of Sluice's own keys. */
    base: `${prefix}:sluice:`,
    /** The prefix of BullMQ's keys of each lane. */
    jobs: { interactive: interactive.jobs, bulk: bulk.jobs },
    markers: { interactive: interactive.marker, bulk: bulk.marker },
    failed: { interactive: interactive.failed, bulk: bulk.failed },
  }
}

/** Names the bounded store of a tenant's own members, as `ownStore` in bounded.lua does. */
export function ownStore(store: string, tenant: string): string {
  return `${store}:of:${tenant.replace(/[%:]/g, encodeURIComponent)}`
}

const KEYS_AT_ONCE = 1_000

/** Finds all keys of a queue, some of them twice. */
export async function* walkKeys(redis: Redis, { prefix }: QueueKeys): AsyncGenerator<string[]> {
  for (let cursor: string | undefined; cursor !== '0'; ) {
    const match = ['MATCH', `${prefix}:*`, 'COUNT', KEYS_AT_ONCE] as const
    const [next, keys] = await redis.scan(cursor ?? '0', ...match)
    cursor = next
    yield keys
  }
}

/** Returns the keys of a queue that are jobs. */
export function jobKeysIn({ jobs }: QueueKeys, keys: readonly string[]): string[] {
  const isJob = (key: string) => (lane: string) =>
    key.startsWith(lane) && isJobId(key.slice(lane.length))
  return keys.filter((key) => Object.values(jobs).some(isJob(key)))
}

export type Queues = Readonly<Record<Lane, Queue<IngestJob>>>

/**
 * Bounds BullMQ's events. They only help people to find the cause of a failure, and may contain its
 * reason.
 */
const EVENTS_KEPT = 1_000

/** Opens BullMQ's own queue for a lane. */
export function openQueue(keys: QueueKeys, lane: Lane, redis: Redis): Queue<IngestJob> {
  const queue = new Queue<IngestJob>(keys.queues[lane], {
    connection: redis,
    prefix: keys.prefix,
    skipVersionCheck: true,
    streams: { events: { maxLen: EVENTS_KEPT } },
  })
  queue.on('error', () => {}) // the connection's own listener logs it
  return queue
}

/** In each interval, one worker searches the lane for jobs whose lock has expired. */
const STALLED_CHECK_MS = 2_000

/**
 * Opens BullMQ's own worker for a lane. It handles the rare cases: failed attempts, returned jobs
 * and stalled jobs. If a worker is killed, other workers fetch its jobs within `lockMs +
 * STALLED_CHECK_MS`.
 */
export function openWorker(
  keys: QueueKeys,
  lane: Lane,
  redis: Redis,
  lockMs: number,
): Worker<IngestJob> {
  return new Worker<IngestJob>(keys.queues[lane], null, {
    connection: redis,
    prefix: keys.prefix,
    autorun: false,
    lockDuration: lockMs,
    stalledInterval: STALLED_CHECK_MS,
    // BullMQ must not bound stalls, because it counts a crash against every job that the worker had
    // locked. fetch.lua counts them instead.
    maxStalledCount: Number.MAX_SAFE_INTEGER,
    settings: { backoffStrategy: delayBeforeNextAttempt },
    removeOnComplete: { count: 0 },
    skipVersionCheck: true,
  })
}

/**
 * The delay is half a second, doubled for each further attempt. It is random, so that jobs that
 * failed together are not retried together.
 */
function delayBeforeNextAttempt(attempts: number): number {
  return 500 * 2 ** (attempts - 1) * (0.5 + Math.random())
}

/**
 * Returns a job as BullMQ does, but with a note in place of its payload: never write the job back.
 */
export function readShownJob(queue: Queue, redis: Redis, id: string): Promise<Job | undefined> {
  const opts = { ...JSON.parse(JOB_OPTIONS), attempts: MAX_ATTEMPTS }
  return readWithoutData(queue, redis, id, 'The payload is not shown here.', opts)
}
