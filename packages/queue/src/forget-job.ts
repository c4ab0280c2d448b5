import { Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import type { QueueKeys } from './queue-keys.ts'

/** Makes what removes a failed job for good; one that was run again meanwhile stays. */
export function createForgetJob(name: string, { prefix }: QueueKeys, redis: Redis): (id: string) => Promise<void> {
  const queue = new Queue(name, { connection: redis, prefix, skipVersionCheck: true })
  queue.on('error', () => {}) // the connection's own listener logs it
  return async (id) => {
    const job = await queue.getJob(id)
    if ((await job?.isFailed()) === true) await job?.remove()
  }
}
