import assert from 'node:assert/strict'
import { createKey } from '@sluice/credentials/keys'
import { createReadOverview } from '@sluice/operations'
import { connectRetrying } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import { requiredUrl } from '@sluice/test-support'
import { afterAll, beforeAll, test } from 'vitest'
import { assertStored } from '../support/assert-stored.ts'
import { statusesOf } from '../support/ledger.ts'
import { openQueue } from '../support/open-queue.ts'
import { postSteadily } from '../support/post-steadily.ts'
import { aThread, type Posted, postThread } from '../support/post-thread.ts'
import { openPrivateServer, type PrivateServer } from '../support/private-server.ts'
import { isFull } from '../support/scale.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { BUSY_MS, until } from '../support/until.ts'

/** Longer than five tries of a job with their pauses: 0.5 + 1 + 2 + 4 s and half as much again. */
const WAIT_SECONDS = '12'

let mongodb: PrivateServer
beforeAll(async () => {
  mongodb = await openPrivateServer('MongoDB', requiredUrl('REDIS_URL'))
})
afterAll(() => mongodb.end())

test('while MongoDB is gone, jobs wait without losing an attempt; all are stored when it is back', async (t) => {
  const sluice = await startSluice(t, {
    workers: 2,
    mongodbUrl: mongodb.url,
    settings: { WAIT_SECONDS },
  })
  const { queue, drained } = openQueue(t, sluice.settings)
  const { key: unseen } = await createKey(sluice.db, { tenant: 'acme', name: 'unseen' })
  // Without rest: each worker must have a job when MongoDB goes.
  const load = postSteadily(t, sluice, { restMs: 0 })
  await load.moreStored(30)
  const { key } = await createKey(sluice.db, { role: 'operator', name: 'on call' })
  const countRefused = async (): Promise<number> => {
    const answer = await fetch(`${sluice.url}/admin/overview`, { headers: { 'x-api-key': key } })
    return JSON.parse(await answer.text()).lastHour.refused
  }
  const refusedBefore = await countRefused()

  await mongodb.kill()
  const stopped = load.stop()
  await Promise.all(
    sluice.workers.map((worker) => worker.line((line) => line.msg === 'store.lost')),
  )
  const cached = postThread(sluice, aThread())
  await assertAnswersWhileUnavailable(sluice, unseen)
  const later = await postThread(sluice, aThread(), 'respond-async')
  assert.equal(later.status, 202)
  const posted = [...(await stopped), later, await cached]
  assertNoFalseAnswer(posted)
  assert.equal((await cached).status, 504)
  assert.equal(await queue.getFailedCount(), 0)
  for (const { attemptsMade, stalledCounter, stacktrace } of await queue.getJobs([
    'wait',
    'active',
  ]))
    assert.deepEqual(
      { attemptsMade, stalledCounter, stacktrace },
      { attemptsMade: 0, stalledCounter: 0, stacktrace: [] },
    )

  await mongodb.startAgain()
  await drained()
  assert.equal(await queue.getFailedCount(), 0)
  await assertStored(sluice.db, posted, { afterCrash: true })
  await until(
    'each 503 is counted',
    async () => (await countRefused()) === refusedBefore + REFUSED_WHILE_UNAVAILABLE,
  )
  assert.equal((await postThread(sluice, aThread())).status, 200)
})

test.runIf(isFull)(
  'while MongoDB hangs, jobs wait without losing an attempt; every caller gets an answer',
  async (t) => {
    const sluice = await startSluice(t, { mongodbUrl: mongodb.url })
    const { queue, drained } = openQueue(t, sluice.settings)
    const redis = connectRetrying(
      { redisUrl: sluice.settings.REDIS_URL ?? '', queue: '' },
      () => {},
    )
    t.onTestFinished(() => redis.disconnect())
    const readOverview = createReadOverview(redis, queueKeys(sluice.settings.QUEUE ?? ''))
    const load = postSteadily(t, sluice)
    await load.moreStored(30)

    const frozenAt = Date.now()
    mongodb.freeze()
    // The other callers may all rest at this moment.
    const hanging = postThread(sluice, aThread())
    const stopped = load.stop()
    const [worker] = sluice.workers
    const lost = await worker?.line((line) => line.msg === 'store.lost')
    assert.match(String(lost?.reason), /^MongoDB is unavailable: ./)
    const outage = await until('the outage is shown', async () => (await readOverview()).storeAway)
    // A worker knows it after ten seconds and more, and shows since when.
    assert(Math.abs(Date.parse(outage.since) - frozenAt) < BUSY_MS, `${outage.since}`)
    // A probe finds the hang before a command of the batch does.
    assert.match(outage.reason, /^MongoDB is unavailable: a command took longer than (5|10) s$/)
    const posting = postThread(sluice, aThread())
    await until(
      'the job of a caller that came meanwhile',
      async () => (await queue.getJobCountByTypes('wait', 'active')) > 0,
    )
    mongodb.thaw()
    const posted = [...(await stopped), await hanging, await posting]
    assert.deepEqual(statusesOf(posted), [200])
    await drained()
    await until('the outage is over', async () => (await readOverview()).storeAwayMs === undefined)
    assert.equal(await queue.getFailedCount(), 0)
    await assertStored(sluice.db, posted, { afterCrash: true })
  },
)

/**
 * The callers that got a 503 while MongoDB was unavailable: one with a key that the API had not
 * seen, and a reader.
 */
const REFUSED_WHILE_UNAVAILABLE = 2

async function assertAnswersWhileUnavailable(sluice: TestSluice, unseen: string): Promise<void> {
  const unknown = await postThread({ url: sluice.url, key: unseen }, aThread())
  assert.deepEqual([unknown.status, unknown.body.code], [503, 'keys_unavailable'])
  const read = await fetch(`${sluice.url}/sources/${'x'.repeat(24)}`, {
    headers: { 'x-api-key': sluice.key },
  })
  assert.deepEqual([read.status, JSON.parse(await read.text()).code], [503, 'store_unavailable'])
  const ready = await fetch(`${sluice.url}/readyz`)
  assert.equal(ready.status, 200, 'the API does not accept jobs without MongoDB')
}

/** Asserts that each answer is either stored or not yet stored. */
function assertNoFalseAnswer(posted: readonly Posted[]): void {
  const expected = new Set<unknown>([200, 202, 504])
  assert.deepEqual(
    posted.map(({ status }) => status).filter((status) => !expected.has(status)),
    [],
  )
}
