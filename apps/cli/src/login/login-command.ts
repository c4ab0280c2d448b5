// The command `sluice login`: prints a link with which a person can log in to the dashboard once.
// It needs only Redis, because people look at the queue when MongoDB is unavailable.

import {
  dashboardUrlSetting,
  type Environment,
  processSettings,
  readSettings,
} from '@sluice/process'
import type { QueueAddress } from '@sluice/process/redis'
import { loginLink, noSluiceIn, RedisUnavailableError, withRunning } from '@sluice/terminal'
import { Command, Option } from 'commander'

export type LoginRole = 'operator' | 'viewer'

/**
 * Stores a link in the Redis of a queue, and returns the link's token.
 * @throws {RedisUnavailableError}
 */
export type CreateLink = (server: QueueAddress, role: LoginRole) => Promise<string>

interface LoginDeps {
  folder: string
  env: Environment
  createLink: CreateLink
  print: (line: string) => void
}

/**
 * `sluice login`. Uses the Redis and the dashboard that the environment names, otherwise what the
 * `start` in the folder uses, otherwise the default ones.
 */
export function loginCommand({ folder, env, createLink, print }: LoginDeps): Command {
  const role = new Option(
    '--role <role>',
    'what the session may do: operator everything, viewer only look',
  )
  return new Command('login')
    .description('Prints a link that logs in to the dashboard once, within ten minutes')
    .addOption(role.choices(['operator', 'viewer']).default('operator'))
    .action(async ({ role }: { role: LoginRole }) => {
      const named = await withRunning(folder, env)
      const { url } = readSettings({ url: dashboardUrlSetting }, named)
      const token = await createLink(queueAddressOf(named), role).catch((error) => {
        throw named.REDIS_URL || !(error instanceof RedisUnavailableError)
          ? error
          : noSluiceIn(folder, 'its Redis with REDIS_URL')
      })
      print(loginLink(url ?? 'http://127.0.0.1:3001', token))
    })
}

/**
 * Returns the address of a queue by REDIS_URL and QUEUE, or their defaults.
 * @throws {SettingsError}
 */
export function queueAddressOf(env: Environment): QueueAddress {
  const { redisUrl, queue } = processSettings
  return readSettings({ redisUrl, queue }, env)
}
