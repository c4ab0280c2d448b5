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

/** Gives the next stamp of the order in which requests are accepted: µs since 1970, unique, rising over all API replicas. */
export type TakeStamp = () => Promise<number>

/** Stamps that are asked for while a round trip is under way share the next one. */
export function createStamps(redis: Redis, { base }: QueueKeys): TakeStamp {
  const takeStamps = createScript(redis, TAKE_STAMPS)
  const take = createGroupCommit(async (asked: undefined[]) => {
    const first = Number(await takeStamps(`${base}stamp`, asked.length))
    return asked.map((_, at) => first + at)
  })
  return () => take(undefined)
}
