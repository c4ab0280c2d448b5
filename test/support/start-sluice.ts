import { createKey } from '@sluice/credentials/keys'
import {
  requiredUrl,
  type StartedProcess,
  startProcess,
  type TestScope,
  testDatabase,
  testQueueName,
} from '@sluice/test-support'
import type { Db } from 'mongodb'
import { until } from './until.ts'

/**
 * What processes of a Sluice of a test's own need: its own queue, its own database, real processes.
 */
export interface PreparedSluice {
  db: Db
  key: string
  /** The settings that its processes share, for starting more of them. */
  settings: Record<string, string>
  startApi(more?: Record<string, string>): Promise<{ api: StartedProcess; url: string }>
  startWorker(more?: Record<string, string>): Promise<StartedProcess>
}

/** A running Sluice of a test's own. */
export interface TestSluice extends PreparedSluice {
  api: StartedProcess
  workers: StartedProcess[]
  /** Of the first API replica: `http://127.0.0.1:…`. */
  url: string
}

export interface SluiceOptions {
  workers?: number
  settings?: Record<string, string>
  redisUrl?: string
  mongodbUrl?: string
}

/** Makes a key of the tenant `acme`, and starts no process. */
export async function prepareSluice(
  t: TestScope,
  options: Omit<SluiceOptions, 'workers'> = {},
): Promise<PreparedSluice> {
  const db = await testDatabase(t, options.mongodbUrl)
  const mongodbUrl = new URL(options.mongodbUrl ?? requiredUrl('MONGODB_URL'))
  mongodbUrl.pathname = `/${db.databaseName}`
  const settings = {
    REDIS_URL: options.redisUrl ?? requiredUrl('REDIS_URL'),
    MONGODB_URL: mongodbUrl.href,
    QUEUE: testQueueName(),
    PORT: '0',
    ADMIN_PORT: '0',
    // A machine that runs tests is busy, and a test of something else must not meet a 503 for that.
    MAX_LOOP_DELAY_MS: '60000',
    ...options.settings,
  }
  const startApi = async (more: Record<string, string> = {}) => {
    const api = startProcess(t, 'apps/api/src/main.ts', { ...settings, ...more })
    const { port } = await api.line((line) => line.msg === 'api.listening')
    return { api, url: `http://127.0.0.1:${port}` }
  }
  const startWorker = async (more: Record<string, string> = {}) => {
    const worker = startProcess(t, 'apps/worker/src/main.ts', { ...settings, ...more })
    await worker.line((line) => line.msg === 'worker.listening')
    return worker
  }
  const { key } = await createKey(db, { tenant: 'acme', name: 'test', deletes: true })
  return { db, key, settings, startApi, startWorker }
}

/** Starts an API and workers and makes a key of the tenant `acme`. */
export async function startSluice(
  t: TestScope,
  { workers = 1, ...options }: SluiceOptions = {},
): Promise<TestSluice> {
  const prepared = await prepareSluice(t, options)
  const [{ api, url }, ...started] = await Promise.all([
    prepared.startApi(),
    ...Array.from({ length: workers }, () => prepared.startWorker()),
  ])
  await untilKeyIsKnown(url, prepared.key)
  return { ...prepared, api, workers: started, url }
}

/**
 * A replica answers 503 to a key that it has never seen if MongoDB takes longer than a second to
 * look it up. A busy machine's may, and a test of something else must not meet that.
 */
export async function untilKeyIsKnown(url: string, key: string): Promise<void> {
  await until('a key is known', async () => {
    const response = await fetch(`${url}/jobs/unknown`, { headers: { 'x-api-key': key } })
    await response.arrayBuffer()
    return response.status !== 503
  })
}
