import assert from 'node:assert/strict'
import { createKey, listKeys } from '@sluice/credentials/keys'
import { connectRetrying } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import { createBatchStore, mongoCommands } from '@sluice/store'
import { requiredUrl, testDatabase, testQueueName } from '@sluice/test-support'
import { type TestContext, test } from 'vitest'
import type { OpenOperation } from '../failed/operations.ts'
import { deleteThreads } from './delete-threads.ts'

const unexpected = async () => assert.fail()
const DAY_MS = 86_400_000

/** What steps of an operation need that send nothing and read no job. */
async function openDeps(t: TestContext, retainDays = 0) {
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  const db = await testDatabase(t)
  return {
    ...{ redis, db, keys: queueKeys(testQueueName()), retainDays },
    ...{ enqueue: unexpected, findResults: unexpected, readJob: unexpected },
    failedJobs: { scan: unexpected, move: unexpected },
    readTenant: async () => ({ threads: 0, bytes: 0, interactive: 0, bulk: 0 }),
  }
}

test('the deletion of a tenant waits until all APIs refuse its keys, also if it was opened long before', async (t) => {
  const deps = await openDeps(t)
  const { db } = deps
  await createKey(db, { tenant: 'acme', name: 'test' })
  const anHourAgo = new Date(Date.now() - 3_600_000).toISOString()
  const filter = { tenant: 'acme' }
  const open: OpenOperation = {
    operation: {
      ...{ id: 'o', kind: 'delete', state: 'active', by: 'k', filter },
      ...{ createdAt: anHourAgo, changedAt: anHourAgo, examined: 0, done: 0, total: 0 },
    },
    request: { filter },
  }
  assert.deepEqual(await deleteThreads(deps, open).next(), { done: false, value: {} })
  const [key] = await listKeys(db)
  assert(key?.revokedAt !== undefined)
})

test('retention keeps a thread that is due only by the clock of a Redis that is ahead', async (t) => {
  const deps = await openDeps(t, 30)
  const store = createBatchStore(mongoCommands(deps.db))
  const stamp = (Date.now() - DAY_MS) * 1_000
  const source = { service: 'slack' as const, externalId: 'young', title: 'Young' }
  const thread = { source, quotes: [] }
  await store.store([{ id: 'j', tenant: 'acme', redelivered: false, stamp, thread }])
  await store.settle()
  const createdAt = new Date(Date.now() + 60 * DAY_MS).toISOString()
  const open: OpenOperation = {
    operation: {
      ...{ id: 'o', kind: 'retain', state: 'active', by: 'retention', createdAt },
      ...{ changedAt: createdAt, examined: 0, done: 0, total: 0 },
    },
    request: { filter: {} },
  }
  for await (const { found = 0 } of deleteThreads(deps, open)) assert.equal(found, 0)
})
