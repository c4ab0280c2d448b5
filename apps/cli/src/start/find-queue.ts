// The Redis of commands that need no API: that of the environment, else of the `start` in the folder, else the usual one.
// Every command loads instance.ts; only these need what reading settings loads.
import { type Environment, processSettings, readSettings } from '@sluice/ops'
import type { QueueAddress } from '@sluice/queue'
import type { RunningInstance } from './instance.ts'

/** Redis can't be reached. */
export class RedisAwayError extends Error {
  override readonly name = 'RedisAwayError'
}

/** @throws {SettingsError} if the environment names a queue that can't be used. */
export function findQueue(env: Environment, running: RunningInstance | undefined): QueueAddress {
  const { redisUrl, queue } = processSettings
  return readSettings({ redisUrl, queue }, { ...env, REDIS_URL: env.REDIS_URL || running?.redisUrl })
}
