import assert from 'node:assert/strict'
import { connectRetrying } from '@sluice/process/redis'
import { feedStore, queueKeys } from '@sluice/queue'
import {
  type StartedProcess,
  startProcess,
  type TestScope,
  testDatabase,
} from '@sluice/test-support'
import { test } from 'vitest'
import { adminStatus } from '../support/admin-status.ts'
import { assertStored } from '../support/assert-stored.ts'
import { openOperator } from '../support/open-operator.ts'
import { openQueue } from '../support/open-queue.ts'
import { aThread, postThread } from '../support/post-thread.ts'
import { runSluice } from '../support/run-sluice.ts'
import {
  type PreparedSluice,
  prepareSluice,
  startSluice,
  untilKeyIsKnown,
} from '../support/start-sluice.ts'
import { until } from '../support/until.ts'

/** Another database on the same server, as the settings of a process name it. */
async function otherDatabase(t: TestScope, { settings }: PreparedSluice) {
  const db = await testDatabase(t)
  const url = new URL(settings.MONGODB_URL ?? '')
  url.pathname = `/${db.databaseName}`
  return { db, url: url.href }
}

/**
 * Resolves with the reason for which a process stopped by itself. A slow machine may have let it
 * start before.
 */
async function refusalOf(process: StartedProcess): Promise<string> {
  const { err, msg } = await process.line(
    ({ msg }) => msg === 'process.start_failed' || msg === 'store.refused',
  )
  assert.deepEqual(await process.ended, { code: msg === 'store.refused' ? 0 : 1, signal: null })
  return Object(err).message
}

test('a process of another store takes no job, stops with both names, and is in the verdict until it is corrected', async (t) => {
  const sluice = await startSluice(t)
  const { key, overview } = await openOperator(sluice)
  const verdict = async () => {
    const { verdict = [] } = await overview()
    return verdict.filter(({ code }) => code === 'other_store').map(({ text }) => text)
  }
  const other = await otherDatabase(t, sluice)
  const settings = { ...sluice.settings, MONGODB_URL: other.url }
  const named = new RegExp(
    `feeds the store ${sluice.db.databaseName} at .*MONGODB_URL names ${other.db.databaseName} at `,
  )
  const refused = ['worker', 'api', 'dashboard'].map((app) =>
    startProcess(t, `apps/${app}/src/main.ts`, settings),
  )
  const posted = await Promise.all(Array.from({ length: 30 }, () => postThread(sluice, aThread())))
  for (const process of refused) assert.match(await refusalOf(process), named)
  assert.match(await until('a finding', async () => (await verdict())[0]), named)
  await assertStored(sluice.db, posted)
  assert.equal(await other.db.collection('sources').countDocuments(), 0)
  const { stdout, code } = await runSluice({ settings }, 'doctor')
  assert.match(stdout, new RegExp(`FAULT .*${named.source}`))
  assert.equal(code, 1)
  const env = { settings: { ...settings, SLUICE_API_KEY: key } }
  const silent = await runSluice(env, 'status', '--url', 'http://127.0.0.1:9')
  assert.match(silent.stdout, named)

  const corrected = await sluice.startWorker()
  await until('no finding', async () => (await verdict()).length === 0)
  // Processes that run find within seconds that the queue was moved.
  const redis = connectRetrying({ redisUrl: sluice.settings.REDIS_URL ?? '', queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  await feedStore(redis, queueKeys(sluice.settings.QUEUE ?? ''), {
    id: 'another',
    database: 'moved',
    hosts: 'there',
  })
  const running = [sluice.api, ...sluice.workers, corrected]
  for (const process of running)
    assert.match(await refusalOf(process), /feeds the store moved at there \(id another\)/)

  // A deployment moves by a command.
  const moved = await runSluice({ settings }, 'doctor', '--after-restore')
  assert.match(
    moved.stdout,
    new RegExp(`feeds the store ${other.db.databaseName} at .* from now on`),
  )
  await sluice.startWorker({ MONGODB_URL: other.url })
  const old = startProcess(t, 'apps/worker/src/main.ts', sluice.settings)
  assert.match(await refusalOf(old), new RegExp(`feeds the store ${other.db.databaseName} `))
})

test('of workers of two stores that start at once on a new queue, those of one store take all jobs', async (t) => {
  const sluice = await prepareSluice(t)
  const other = await otherDatabase(t, sluice)
  const { api, url } = await sluice.startApi()
  await untilKeyIsKnown(url, sluice.key)
  const threads = Array.from({ length: 10 }, () =>
    postThread({ url, key: sluice.key }, aThread(), 'respond-async'),
  )
  for (const { status } of await Promise.all(threads)) assert.equal(status, 202)
  // A queue that no worker knows may be a wrong name.
  assert.equal(await adminStatus(api, '/readyz'), 503)
  const { queue, database, mongodb, redis } = await api.line(({ msg }) => msg === 'api.listening')
  assert.deepEqual([queue, database], [sluice.settings.QUEUE, sluice.db.databaseName])
  for (const [hosts, address] of [
    [mongodb, sluice.settings.MONGODB_URL],
    [redis, sluice.settings.REDIS_URL],
  ])
    assert.equal(hosts, new URL(String(address)).host)

  const start = (MONGODB_URL: string) =>
    startProcess(t, 'apps/worker/src/main.ts', { ...sluice.settings, MONGODB_URL })
  const own = [start(sluice.settings.MONGODB_URL ?? ''), start(sluice.settings.MONGODB_URL ?? '')]
  const others = [start(other.url), start(other.url)]
  await openQueue(t, sluice.settings).drained()
  const counts = await Promise.all(
    [sluice.db, other.db].map((db) => db.collection('sources').countDocuments()),
  )
  assert.deepEqual(
    counts.toSorted((one, two) => one - two),
    [0, 10],
  )
  const isOwn = counts[0] === 10
  for (const process of isOwn ? others : [...own, api])
    assert.match(await refusalOf(process), /feeds the store/)
  if (isOwn)
    await until('the API is ready', async () => (await adminStatus(api, '/readyz')) === 200)
  const ids = await (isOwn ? sluice : other).db
    .collection<{ _id: string }>('layout')
    .find({ _id: { $in: ['documents', 'store'] } })
    .toArray()
  assert.equal(ids.length, 2)
})

test('a worker takes no job before MongoDB has told which store it is, and can be stopped meanwhile', async (t) => {
  const sluice = await prepareSluice(t)
  const { api, url } = await sluice.startApi()
  await untilKeyIsKnown(url, sluice.key)
  const posted = await postThread({ url, key: sluice.key }, aThread(), 'respond-async')
  assert.equal(posted.status, 202)
  const worker = await sluice.startWorker({ MONGODB_URL: 'mongodb://127.0.0.1:9/sluice' })
  await worker.line(({ msg }) => msg === 'store.not_checked')
  const { bulk, left } = openQueue(t, sluice.settings)
  assert.deepEqual([await bulk.getActiveCount(), await left()], [0, 1])
  worker.signal('SIGTERM')
  assert.deepEqual(await worker.ended, { code: 0, signal: null })
  assert.equal(await adminStatus(api, '/readyz'), 503)
})
