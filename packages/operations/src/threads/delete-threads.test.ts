import assert from 'node:assert/strict'
import { createKey, listKeys } from '@sluice/credentials/keys'
import { connectRetrying } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import { requiredUrl, testDatabase, testQueueName } from '@sluice/test-support'
import { test } from 'vitest'
import type { OpenOperation } from '../failed/operations.ts'
import { deleteThreads } from './delete-threads.ts'

const unexpected = async () => assert.fail()

test('the deletion of a tenant waits until all APIs refuse its keys, also if it was opened long before', async (t) => {
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  const db = await testDatabase(t)
  await createKey(db, { tenant: 'acme', name: 'test' })
  const deps = {
    ...{ redis, db, keys: queueKeys(testQueueName()), retainDays: 0 },
    ...{ enqueue: unexpected, findResults: unexpected, readJob: unexpected },
    failedJobs: { scan: unexpected, move: unexpected },
    readTenant: async () => ({ threads: 0, bytes: 0, interactive: 0, bulk: 0 }),
  }
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
