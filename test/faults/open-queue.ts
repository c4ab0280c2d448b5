import type { TestContext } from 'node:test'
import { connectPatient, type IngestJob, queueKeys } from '@sluice/queue'
import { Queue } from 'bullmq'
import { until } from './until.ts'

const HELD_MS = 600_000

/** Looks into the queue of a test, on a connection of its own. */
export interface QueueView {
  queue: Queue<IngestJob>
  /** Resolves when no job waits, is worked on or has another try before it. */
  drained(withinMs: number): Promise<unknown>
  /** Keeps all jobs that are active now from being taken over, until `expireLocks`. */
  holdLocks(): Promise<void>
  /** Lets the locks of all active jobs run out at once, as seen by a check of two seconds ago: what a killed worker had need not be waited for. */
  expireLocks(): Promise<void>
}

export function openQueue(t: TestContext, { REDIS_URL = '', QUEUE = '' }: Record<string, string>): QueueView {
  const redis = connectPatient(REDIS_URL, () => {})
  const keys = queueKeys(QUEUE)
  const queue = new Queue<IngestJob>(QUEUE, { connection: redis, prefix: keys.prefix, skipVersionCheck: true })
  queue.on('error', () => {})
  t.after(async () => {
    await queue.close()
    redis.disconnect()
  })
  const left = async () => {
    const counts = await queue.getJobCounts('wait', 'active', 'delayed', 'prioritized')
    return Object.values(counts).reduce((sum, count) => sum + count, 0)
  }
  async function setLocksTtl(ms: number): Promise<void> {
    for (const { id } of await queue.getActive()) await redis.pexpire(`${keys.base}${id}:lock`, ms)
  }
  const holdLocks = () => setLocksTtl(HELD_MS)
  async function expireLocks(): Promise<void> {
    await setLocksTtl(0)
    for (const { id } of await queue.getActive()) await redis.sadd(`${keys.base}stalled`, id ?? '')
  }
  return {
    queue,
    holdLocks,
    expireLocks,
    drained: (withinMs) => until('an empty queue', withinMs, async () => (await left()) === 0),
  }
}
