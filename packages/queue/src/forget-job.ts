import type { Redis } from 'ioredis'
import { openQueue } from './enqueuer.ts'
import { LANES } from './ingest-job.ts'
import type { QueueKeys } from './queue-keys.ts'

/** Makes what removes a failed job for good; one that was run again meanwhile stays. */
export function createForgetJob(keys: QueueKeys, redis: Redis): (id: string) => Promise<void> {
  const queues = LANES.map((lane) => openQueue(keys, lane, redis))
  return async (id) => {
    for (const queue of queues) {
      const job = await queue.getJob(id)
      if ((await job?.isFailed()) === true) await job?.remove()
    }
  }
}
