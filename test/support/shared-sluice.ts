import { randomBytes } from 'node:crypto'
import { createKey } from '@sluice/credentials/keys'
import type { TestScope } from '@sluice/test-support'
import { type Db, MongoClient } from 'mongodb'
import { startSluice, untilKeyIsKnown } from './start-sluice.ts'

// One Sluice, an API and two workers with their default settings, serves all tests that need
// neither a process nor a queue of their own: to start one takes a second of CPU, and its first
// requests take longest.

const URL_NAME = 'SHARED_SLUICE_URL'
const MONGODB_URL_NAME = 'SHARED_SLUICE_MONGODB_URL'

/**
 * Starts it for a run. Test processes find it by the environment that they inherit. Returns how to
 * end it.
 */
export async function openSharedSluice(): Promise<() => Promise<void>> {
  const cleanUps: (() => unknown)[] = []
  const end = async () => {
    for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
  }
  const scope: TestScope = {
    task: { name: 'shared', result: { state: 'pass' } },
    onTestFinished: (cleanUp) => void cleanUps.push(cleanUp),
  }
  try {
    const { url, settings, api, workers } = await startSluice(scope, { workers: 2 })
    Object.assign(process.env, { [URL_NAME]: url, [MONGODB_URL_NAME]: settings.MONGODB_URL })
    // A process that is killed can't run the clean-ups.
    process.once('exit', () => [api, ...workers].map(({ child }) => child.kill('SIGKILL')))
    return end
  } catch (error) {
    await end()
    throw error
  }
}

/** A tenant of a test's own in the shared Sluice. */
export interface SharedSluice {
  url: string
  db: Db
  tenant: string
  key: string
}

/** Makes a tenant and its key. */
export async function shareSluice(t: TestScope): Promise<SharedSluice> {
  const { [URL_NAME]: url, [MONGODB_URL_NAME]: mongodbUrl } = process.env
  if (url === undefined || mongodbUrl === undefined)
    throw new Error('The runner started no Sluice for this file')
  const client = await new MongoClient(mongodbUrl).connect()
  t.onTestFinished(() => client.close())
  const db = client.db()
  const tenant = `acme-${randomBytes(4).toString('hex')}`
  const { key } = await createKey(db, { tenant, name: tenant, deletes: true })
  await untilKeyIsKnown(url, key)
  return { url, db, tenant, key }
}
