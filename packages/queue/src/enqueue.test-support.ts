import { once } from 'node:events'
import type { Redis } from 'ioredis'
import type { QueueKeys } from './bullmq-layout/names.ts'
import { createEnqueuer, type JobInput } from './enqueue.ts'
import type { Lane } from './job.ts'

/** Makes a function that adds a job and returns its first stamp. */
export function createJobAdder(redis: Redis, keys: QueueKeys) {
  const { enqueue } = createEnqueuer(keys, redis)
  return async ({ id, lane, job }: { id: string; lane: Lane; job: JobInput }): Promise<number> => {
    if (redis.status !== 'ready') await once(redis, 'ready')
    await enqueue(id, lane, job)
    const data = await redis.hget(keys.jobs[lane] + id, 'data')
    return JSON.parse(data ?? '{}').stamp
  }
}
