// Connects to the Redis of a queue while some work is done.
import { once } from 'node:events'
import type { QueueAddress, Redis } from '@sluice/process/redis'
import { OF_MONGODB, RedisUnavailableError, UserError } from './run-program.ts'

export type { QueueAddress }

/**
 * A connection must be ready within this time, because there is no error if Redis is loading its
 * data or a proxy hangs up.
 */
const READY_MS = 5_000

/**
 * Connects to the Redis of a queue until `work` is done.
 * @throws {RedisUnavailableError}
 */
export async function withRedis<Result>(
  address: QueueAddress,
  work: (redis: Redis) => Promise<Result>,
): Promise<Result> {
  // Loaded here, because most commands need no Redis.
  const { connectFailFast, readRedisUrl } = await import('@sluice/process/redis')
  const redis = connectFailFast(address, () => {})
  try {
    const late = new Error(
      `it was not ready within ${READY_MS / 1_000} s, as while it loads its data`,
    )
    const timer = setTimeout(() => redis.emit('error', late), READY_MS)
    await once(redis, 'ready').finally(() => clearTimeout(timer))
    return await work(redis)
  } catch (error) {
    if (error instanceof UserError || (error instanceof Error && OF_MONGODB.test(error.name)))
      throw error
    const servers = readRedisUrl(address.redisUrl).endpoints.map(
      ({ host, port }) => `${host}:${port}`,
    )
    const { name, message } = error instanceof Error ? error : new Error(String(error))
    // Redis's own error names the command that it refuses to this user.
    const why = name === 'ReplyError' ? 'refuses a command' : 'cannot be reached'
    throw new RedisUnavailableError(`Redis at ${servers.join(', ')} ${why}: ${message}`)
  } finally {
    redis.disconnect()
  }
}
