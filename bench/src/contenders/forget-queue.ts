import { Redis } from 'ioredis'

/** Removes whatever Redis holds of a queue that nobody else's has the name of. */
export async function forgetQueue(redisUrl: string, queue: string): Promise<void> {
  const redis = new Redis(redisUrl)
  for await (const keys of redis.scanStream({ match: `*${queue}*`, count: 1_000 })) {
    if (keys.length > 0) await redis.unlink(...keys)
  }
  redis.disconnect()
}
