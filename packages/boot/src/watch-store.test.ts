import assert from 'node:assert/strict'
import { createLogger, reasonWithCode } from '@sluice/process'
import { connectFailFast } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import { connectStore, reasonBehind } from '@sluice/store/connect'
import { requiredUrl, type TestScope, testDatabase, testQueueName } from '@sluice/test-support'
import { test, vi } from 'vitest'
import { type MarkNote, readMarks } from './marks.ts'
import { watchStore } from './watch-store.ts'

async function openServers(t: TestScope) {
  const db = await testDatabase(t)
  const keys = queueKeys(testQueueName())
  const redis = connectFailFast({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  await new Promise((resolve) => redis.once('ready', resolve))
  t.onTestFinished(async () => {
    await redis.unlink('none', ...(await redis.keys(`${keys.base.replace('{', '\\{')}*`)))
    redis.disconnect()
  })
  return { db, keys, redis }
}

test('marks that rise after an outage of MongoDB, while they are read, are no older store', async (t) => {
  const { db, keys, redis } = await openServers(t)
  const notes = db.collection<MarkNote>('layout')
  const mark = 1_000
  const queue = keys.queues.interactive
  const note = { mark, before: mark, paused: {}, threads: 0, failed: 0, oldest: 0 }
  await notes.insertOne({ _id: `queue:${queue}`, ...note })
  const read = redis.mget.bind(redis)
  vi.spyOn(redis, 'mget').mockImplementationOnce(async (names) => {
    await notes.updateOne({ _id: `queue:${queue}` }, { $set: { mark: mark + 60_000 } })
    await redis.set(`${keys.base}mark`, mark + 60_000)
    return read(names)
  })
  const { isLost, isOther } = await readMarks(redis, keys, db)
  assert.deepEqual({ isLost, isOther }, { isLost: false, isOther: false })
  await notes.updateOne({ _id: `queue:${queue}` }, { $set: { mark } })
  await assert.rejects(readMarks(redis, keys, db), /has its state of 1970-01-01T00:00:01/)
})

test('an API that starts while the first worker claims the queue waits for it', async (t) => {
  const { db, keys, redis } = await openServers(t)
  const stops: unknown[] = []
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

test('a replica set that has no server at the hosts of MONGODB_URL is named', async (t) => {
  const url = new URL(requiredUrl('MONGODB_URL'))
  url.search = 'replicaSet=elsewhere'
  const store = connectStore(url.href)
  t.onTestFinished(store.close)
  const { db } = store
  const error = reasonBehind(await db.command({ ping: 1 }).catch((error) => error), db.client)
  assert(error instanceof Error)
  const named = 'MONGODB_URL names a replica set that has no server there (replicaSet=elsewhere)'
  assert.equal(error.message, named)
  assert.equal(reasonWithCode('it commits no writes', error), 'it commits no writes (REPLICA_SET)')
})
