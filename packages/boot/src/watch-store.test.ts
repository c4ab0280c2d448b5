import assert from 'node:assert/strict'
import { createLogger } from '@sluice/process'
import { connectFailFast } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import { requiredUrl, testDatabase, testQueueName } from '@sluice/test-support'
import { test, vi } from 'vitest'
import { watchStore } from './watch-store.ts'

test('an API that starts while the first worker claims the queue waits for it', async (t) => {
  const db = await testDatabase(t)
  const keys = queueKeys(testQueueName())
  const redis = connectFailFast({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  await new Promise((resolve) => redis.once('ready', resolve))
  const stops: unknown[] = []
  t.onTestFinished(async () => {
    await redis.unlink('none', ...(await redis.keys(`${keys.base.replace('{', '\\{')}*`)))
    redis.disconnect()
  })
  const stop = (why: unknown) => void stops.push(why)
  const log = createLogger('test', 'silent')
  const watch = (kind: 'api' | 'worker') => watchStore({ kind, db, redis, keys, log, stop })

  // Between the API's reads of the store and of the queue, a worker writes the ids of both.
  const read = redis.get.bind(redis)
  let reads = 0
  vi.spyOn(redis, 'get').mockImplementation(async (key) => {
    if (key === `${keys.base}store` && ++reads === 2) await (await watch('worker')).fed
    return read(key)
  })
  const api = await watch('api')
  await api.fed
  assert.deepEqual(stops, [])
})
