import type { Redis } from 'ioredis'
import { createGroupCommit } from './group-commit.ts'
import type { QueueKeys } from './queue-keys.ts'
import { createScript } from './script.ts'

/**
 * Redis gives the order, not a replica's clock: the last stamp plus one, or Redis's own time in µs where that is later. So it goes on rising
 * when Redis fails over or loses its data. KEYS: the last stamp; ARGV: how many are wanted; gives the first of them.
 */
const TAKE_STAMPS = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local last = tonumber(redis.call('GET', KEYS[1]) or '0')
local first = math.max(last + 1, now)
redis.call('SET', KEYS[1], string.format('%.0f', first + ARGV[1] - 1))
return string.format('%.0f', first)
`

/** Gives the first of the next `count` stamps of the order in which threads are accepted: µs since 1970, unique, rising over all API replicas. */
export type TakeStamps = (count: number) => Promise<number>

/** Stamps that are asked for while a round trip is under way share the next one. */
export function createStamps(redis: Redis, { base }: QueueKeys): TakeStamps {
  const takeStamps = createScript(redis, TAKE_STAMPS)
  return createGroupCommit(async (counts: number[]) => {
    const first = Number(
      await takeStamps(
        `${base}stamp`,
        counts.reduce((sum, count) => sum + count, 0),
      ),
    )
    let next = first
    return counts.map((count) => {
      next += count
      return next - count
    })
  })
}
