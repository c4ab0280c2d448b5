import assert from 'node:assert/strict'
import { connectFailFast } from '@sluice/process/redis'
import { QueueUnavailableError, queueKeys } from '@sluice/queue'
import { CommandFailedError } from '@sluice/store/read'
import { requiredUrl, testDatabase, testQueueName } from '@sluice/test-support'
import { MongoClient } from 'mongodb'
import { test } from 'vitest'
import { createDeletionRecords } from './deletion-records.ts'

test('a record that a server does not take is refused with the error of that server', async (t) => {
  const keys = queueKeys(testQueueName())
  const redis = connectFailFast({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  await new Promise((resolve) => redis.once('ready', resolve))
  t.onTestFinished(() => redis.disconnect())
  const record = { kind: 'tenant', id: 'one', stamp: 1, tenant: 'acme' } as const

  const gone = await new MongoClient(requiredUrl('MONGODB_URL')).connect()
  await gone.close()
  const withoutMongodb = createDeletionRecords(redis, keys, gone.db('gone'))
  await assert.rejects(withoutMongodb.write([record]), CommandFailedError)

  const db = await testDatabase(t)
  await createDeletionRecords(redis, keys, db).write([record])
  await redis.unlink(`${keys.base}deletions`)
  redis.disconnect()
  const withoutRedis = createDeletionRecords(redis, keys, db)
  await assert.rejects(withoutRedis.write([record]), QueueUnavailableError)
})
