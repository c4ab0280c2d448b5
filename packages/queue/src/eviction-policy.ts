import type { Redis } from 'ioredis'

/** Redis would throw jobs away when its memory is full. */
export class EvictionPolicyError extends Error {
  constructor(policy: string) {
    super(
      `Redis runs with maxmemory-policy ${policy} and would throw accepted jobs away when its memory is full. ` +
        'Set it to noeviction: `redis-cli config set maxmemory-policy noeviction`, and `maxmemory-policy noeviction` in redis.conf.',
    )
    this.name = 'EvictionPolicyError'
  }
}

/**
 * Refuses a Redis that evicts, without waiting for one that is away: it is asked whenever a connection to it is ready.
 *
 * @throws {EvictionPolicyError} where it is there at the start; later the error is an unhandled rejection, which ends the process.
 */
export async function watchEvictionPolicy(redis: Redis): Promise<void> {
  const started = Promise.withResolvers<void>()
  let isStarted = false
  redis.on('ready', () => {
    requireNoEviction(redis).then(started.resolve, (error) => {
      if (!(error instanceof EvictionPolicyError)) return started.resolve()
      if (isStarted) throw error
      started.reject(error)
    })
  })
  redis.once('error', () => started.resolve())
  await started.promise
  isStarted = true
}

/** Asks for the policy by INFO, which managed Redis allows where it refuses CONFIG. @throws {EvictionPolicyError} */
async function requireNoEviction(redis: Redis): Promise<void> {
  const policy = /^maxmemory_policy:(\S+)/m.exec(await redis.info('memory'))?.[1]
  if (policy !== undefined && policy !== 'noeviction') throw new EvictionPolicyError(policy)
}
