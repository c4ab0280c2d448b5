// Estimates Redis's clock from the times in its replies, because the clocks of processes may be
// wrong.
import type { Redis } from 'ioredis'

/** Asks for Redis's time, in ms since 1970. */
export async function readRedisTime(redis: Redis): Promise<number> {
  const [seconds, microseconds] = await redis.time()
  return Number(seconds) * 1_000 + Number(microseconds) / 1_000
}

/**
 * The next sample replaces one that is older than this, even if it is lower, because the two clocks
 * may have drifted apart.
 */
const SAMPLE_MS = 10_000

/**
 * Measures by how much Redis's clock is ahead of the local monotonic clock. Each sample is a lower
 * bound, because the reply arrives after Redis has read its clock. So the highest sample counts.
 */
export function openRedisClock(redis: Redis) {
  let aheadMs: number | undefined
  let sampledAt = 0
  // The next connection may lead to another server.
  redis.on('close', () => {
    aheadMs = undefined
  })

  /** @param redisMs the time in a reply that has just arrived, in ms since 1970. */
  function note(redisMs: number): number {
    const now = performance.now()
    const sample = redisMs - now
    if (aheadMs === undefined || sample > aheadMs || now - sampledAt > SAMPLE_MS) {
      aheadMs = sample
      sampledAt = now
    }
    return aheadMs
  }

  const ask = async () => note(await readRedisTime(redis))
  return {
    note,
    ask,
    aheadMs: async () => aheadMs ?? ask(),
    /** The later of Redis's time, if that is known, and the time of this process (ms since 1970). */
    laterNow: () => Math.max(Date.now(), performance.now() + (aheadMs ?? Number.NEGATIVE_INFINITY)),
  }
}
