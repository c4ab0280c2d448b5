import { connectRetrying } from '@sluice/process/redis'
import { type IngestJob, openQueue as openLane, queueKeys } from '@sluice/queue'
import type { TestScope } from '@sluice/test-support'
import type { Queue } from 'bullmq'
import { until } from './until.ts'

const EXTENDED_MS = 600_000

/** Inspects the queue of a test, on a connection of its own. */
export interface QueueView {
  /** The interactive lane. */
  queue: Queue<IngestJob>
  /** The bulk lane. */
  bulk: Queue<IngestJob>
  /** The number of jobs that are waiting, active or delayed, in both lanes. */
  left(): Promise<number>
  /** Resolves when no job is left. */
  drained(withinMs?: number): Promise<unknown>
  /** Keeps all jobs that are active now from being taken over, until `expireLocks`. */
  extendLocks(): Promise<void>
  /**
   * Expires the locks of all active jobs at once, as if a check two seconds ago had seen that: so
   * tests need not wait for a killed worker's locks.
   */
  expireLocks(): Promise<void>
}

export function openQueue(
  t: TestScope,
  { REDIS_URL = '', QUEUE = '' }: Record<string, string>,
): QueueView {
  const redis = connectRetrying({ redisUrl: REDIS_URL, queue: QUEUE }, () => {})
  const keys = queueKeys(QUEUE)
  const queue = openLane(keys, 'interactive', redis)
  const bulk = openLane(keys, 'bulk', redis)
  t.onTestFinished(async () => {
    await Promise.all([queue.close(), bulk.close()])
    redis.disconnect()
  })
  const left = async () => {
    const states = ['wait', 'active', 'delayed', 'prioritized'] as const
    const counts = await Promise.all([queue, bulk].map((lane) => lane.getJobCounts(...states)))
    return counts.flatMap((ofLane) => Object.values(ofLane)).reduce((sum, count) => sum + count, 0)
  }
  async function active(): Promise<string[]> {
    const [interactive, inBulk] = await Promise.all([queue.getActive(), bulk.getActive()])
    return [
      ...interactive.map(({ id }) => keys.jobs.interactive + id),
      ...inBulk.map(({ id }) => keys.jobs.bulk + id),
    ]
  }
  async function setLocksTtl(ms: number): Promise<void> {
    for (const job of await active()) await redis.pexpire(`${job}:lock`, ms)
  }
  const extendLocks = () => setLocksTtl(EXTENDED_MS)
  async function expireLocks(): Promise<void> {
    await setLocksTtl(0)
    for (const { id } of await queue.getActive())
      await redis.sadd(`${keys.jobs.interactive}stalled`, id ?? '')
    for (const { id } of await bulk.getActive())
      await redis.sadd(`${keys.jobs.bulk}stalled`, id ?? '')
  }
  return {
    queue,
    bulk,
    left,
    extendLocks,
    expireLocks,
    drained: (withinMs) => until('an empty queue', async () => (await left()) === 0, withinMs),
  }
}
