import { join } from 'node:path'
import { createKey } from '@sluice/credentials/keys'
import { freePort } from '@sluice/local'
import { MongoClient } from 'mongodb'
import type { Bench } from '../bench.ts'
import { closedLoop } from '../closed-loop.ts'
import type { HttpContender } from './contender.ts'
import { databaseUrl, dropDatabase } from './database.ts'
import { forgetQueue } from './forget-queue.ts'
import { launchSluice } from './launch-sluice.ts'

export interface Sluice extends HttpContender {
  /** The metrics URL of each API replica. */
  apiAdmins: readonly string[]
  workerAdmins: readonly string[]
  /** The name of its database in MongoDB. */
  database: string
  /** Starts one more worker. */
  startWorker(): Promise<SluiceWorker>
}

export interface SluiceOptions {
  /** Distinguishes it from others of the same run. */
  name?: string
  /** Another checkout of Sluice, instead of this one. */
  root?: string
  /** Replicas of the API, and workers. */
  apis?: number
  workers?: number
  settings?: Readonly<Record<string, string>>
}

export interface SluiceWorker {
  admin: string
  stop(): Promise<void>
}

/** What `start` sets on a machine of two cores: its users see what they stored. */
export const AS_START = {
  name: 'sluice-start',
  workers: 2,
  settings: { LIST_SOURCES: 'on' },
} satisfies SluiceOptions

/**
 * All bounds are on, but one key posts everything here: more quotes a second, and more of the
 * queue, than one key usually may.
 */
const BOUNDS = {
  QUOTES_PER_SECOND: '1000000000',
  BURST_QUOTES: '1000000000',
  TENANT_SHARE: '1',
  MAX_QUEUE_THREADS: '1000000',
  MAX_QUEUE_BYTES: '4294967296',
}

const THIS_CHECKOUT = join(import.meta.dirname, '../../..')

/**
 * Starts Sluice as users run it: real processes, logs, metrics, keys and guards, with a database
 * and a queue of its own.
 */
export async function startSluice(bench: Bench, options: SluiceOptions = {}): Promise<Sluice> {
  const parts = new AsyncDisposableStack()
  try {
    return await startParts(bench, options, parts)
  } catch (error) {
    await parts.disposeAsync()
    throw error
  }
}

async function startParts(
  bench: Bench,
  { name = 'sluice', root = THIS_CHECKOUT, apis = 1, workers = 1, settings = {} }: SluiceOptions,
  parts: AsyncDisposableStack,
): Promise<Sluice> {
  const queue = `${bench.run}-${name}`
  const mongodbUrl = databaseUrl(bench.mongodbUrl, queue)
  parts.defer(() => forgetQueue(bench.redisUrl, queue))
  parts.defer(() => dropDatabase(bench, mongodbUrl))
  const key = await createBenchKey(mongodbUrl)
  const env = {
    REDIS_URL: bench.redisUrl,
    MONGODB_URL: mongodbUrl,
    QUEUE: queue,
    ...BOUNDS,
    ...settings,
  }
  const launch = async (app: 'api' | 'worker') => {
    const { launched, ...where } = await launchSluice(app, {
      root,
      folder: bench.folder,
      port: await freePort(),
      env,
    })
    parts.defer(() => launched.stop())
    return { ...where, process: { name: app, pid: launched.pid }, stop: () => launched.stop() }
  }
  const replicas = await Promise.all(Array.from({ length: apis }, () => launch('api')))
  const working = await Promise.all(Array.from({ length: workers }, () => launch('worker')))
  const urls = replicas.map(({ url }) => url)
  return {
    name,
    urls,
    key,
    apiAdmins: replicas.map(({ admin }) => admin),
    workerAdmins: working.map(({ admin }) => admin),
    database: queue,
    processes: [...replicas, ...working].map(({ process }) => process),
    startWorker: () => launch('worker'),
    run: (threads, callers) => closedLoop(urls, key, threads, callers),
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  }
}

async function createBenchKey(url: string): Promise<string> {
  const client = new MongoClient(url)
  try {
    return (
      await createKey(client.db(), { tenant: 'bench', name: `bench, ${new Date().toISOString()}` })
    ).key
  } finally {
    await client.close()
  }
}
