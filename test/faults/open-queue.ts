import type { TestContext } from 'node:test'
import { connectPatient, type IngestJob, queueKeys } from '@sluice/queue'
import { Queue } from 'bullmq'
import { until } from './until.ts'

/** Looks into the queue of a test, on a connection of its own. */
export interface QueueView {
  queue: Queue<IngestJob>
  /** Resolves when no job waits, is worked on or has another try before it. */
  drained(withinMs: number): Promise<unknown>
  /** Lets the locks of all active jobs run out at once: what a killed worker had need not be waited for. */
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
  async function expireLocks(): Promise<void> {
    const locks = (await queue.getActive()).map(({ id }) => `${keys.base}${id}:lock`)
    if (locks.length > 0) await redis.del(...locks)
  }
  return { queue, expireLocks, drained: (withinMs) => until('an empty queue', withinMs, async () => (await left()) === 0) }
}
