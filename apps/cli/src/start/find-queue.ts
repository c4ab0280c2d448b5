// The Redis of commands that need no API: that of the environment, else of the `start` in the folder, else the usual one.
// Every command loads instance.ts; only these need what reading settings loads.
import { type Environment, processSettings, readSettings } from '@sluice/ops'
import { instancePaths, readRunning } from './instance.ts'

/** Where a queue is. */
export interface QueueAddress {
  redisUrl: string
  queue: string
}

/** Redis can't be reached. */
export class RedisAwayError extends Error {
  override readonly name = 'RedisAwayError'
}

/** Finds the queue of a folder. @throws {SettingsError} if the environment names none that can be used. */
export async function findQueue(folder: string, env: Environment): Promise<QueueAddress> {
  const { redisUrl, queue } = processSettings
  const running = await readRunning(instancePaths(folder).running)
  return readSettings({ redisUrl, queue }, { ...env, REDIS_URL: env.REDIS_URL || running?.redisUrl })
}
