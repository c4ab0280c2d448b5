// Redis's time, as far as its replies show.
import type { Redis } from 'ioredis'

/** A sample that is older than this is replaced even by a worse one: the two clocks may have drifted apart. */
const SAMPLE_MS = 10_000

/**
 * Measures by how much Redis's time is ahead of the local monotonic clock. A reply arrives after Redis has read its
 * clock, so each sample is a lower bound.
 */
export function openRedisClock(redis: Redis) {
  let aheadMs: number | undefined
  let sampledAt = 0
  // The next connection may lead to another server.
  redis.on('close', () => {
    aheadMs = undefined
  })

  /** @param redisUs the time in a reply that has just arrived, in µs since 1970. */
  function note(redisUs: number): number {
    const now = performance.now()
    const sample = redisUs / 1000 - now
    if (aheadMs === undefined || sample > aheadMs || now - sampledAt > SAMPLE_MS) {
      aheadMs = sample
      sampledAt = now
    }
    return aheadMs
  }

  async function ask(): Promise<number> {
    const [seconds, microseconds] = await redis.time()
    return note(Number(seconds) * 1_000_000 + Number(microseconds))
  }

  /** Asks Redis for its time before the first reply. */
  return { note, ask, aheadMs: async () => aheadMs ?? ask() }
}
