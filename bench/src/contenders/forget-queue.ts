import { Redis } from 'ioredis'

/** Removes every Redis key of a queue; its name must be part of no other queue's name. */
export async function forgetQueue(redisUrl: string, queue: string): Promise<void> {
  const redis = new Redis(redisUrl)
  for await (const keys of redis.scanStream({ match: `*${queue}*`, count: 1_000 })) {
    if (keys.length > 0) await redis.unlink(...keys)
  }
  redis.disconnect()
}
