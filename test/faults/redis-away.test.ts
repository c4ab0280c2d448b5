import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { requiredUrl } from '@sluice/test-support'
import { afterAll, beforeAll, test } from 'vitest'
import { startSluice } from '../start-sluice.ts'
import { assertStored } from './assert-stored.ts'
import { openQueue } from './open-queue.ts'
import { postSteadily } from './post-steadily.ts'
import { aThread, type Posted, postThread } from './post-thread.ts'
import { openPrivateServer, type PrivateServer } from './private-server.ts'
import { until } from './until.ts'

/** The law allows Redis to lose what was accepted in its last second (AOF everysec), in ms. */
const LAST_SECOND_MS = 1_100
const REFUSED_WITHIN_MS = 2_000

let redis: PrivateServer
beforeAll(async () => {
  redis = await openPrivateServer('Redis', requiredUrl('MONGODB_URL'))
})
afterAll(() => redis.end())

test('accepted jobs survive a killed Redis, and the API and the workers reconnect', {
  timeout: 40_000,
}, async (t) => {
  const sluice = await startSluice(t, { workers: 2, redisUrl: redis.url })
  const { drained } = openQueue(t, sluice.settings)
  const stored = await postThread(sluice, aThread())
  for (const worker of sluice.workers) worker.signal('SIGSTOP')
  const accepted = await Promise.all(Array.from({ length: 40 }, () => postThread(sluice, aThread(), 'respond-async')))
  assert(accepted.every(({ status }) => status === 202))
  await pause(LAST_SECOND_MS)

  await redis.kill()
  for (const worker of sluice.workers) worker.signal('SIGCONT')
  for (const refused of await Promise.all([1, 2, 3].map(() => postThread(sluice, aThread())))) assertRefused(refused)
  assert.equal((await fetch(`${sluice.url}/readyz`)).status, 503)
  await redis.startAgain()
  await until('the API accepts jobs again', 3_000, async () => (await fetch(`${sluice.url}/readyz`)).status === 200)
  const later = await postThread(sluice, aThread())
  assert.equal(later.status, 200)
  await drained(20_000)
  await assertStored(sluice.db, [stored, ...accepted, later])
  const working = sluice.workers.map((worker) => worker.child.exitCode)
  assert.deepEqual(working, [null, null])
})

test('while Redis is killed or hangs under load, callers get an answer in time, and every 200 is stored', {
  timeout: 40_000,
}, async (t) => {
  const sluice = await startSluice(t, { redisUrl: redis.url, settings: { WAIT_SECONDS: '8' } })
  const { drained } = openQueue(t, sluice.settings)
  const load = postSteadily(t, sluice)
  await load.moreStored(30, 10_000)
  for (const { takeAway, giveBack } of [
    { takeAway: redis.kill, giveBack: redis.startAgain },
    { takeAway: redis.freeze, giveBack: redis.thaw },
  ]) {
    const before = load.posted.length
    await takeAway()
    const refused = () => load.posted.slice(before).filter(({ status }) => status === 503)
    await until('sixteen refusals', 15_000, () => refused().length >= 16)
    for (const answer of refused()) assertRefused(answer)
    await giveBack()
    await load.moreStored(30, 10_000)
  }
  const posted = await load.stop()
  await drained(20_000)
  const expected = new Set<unknown>([200, 503, 504])
  assert.deepEqual(
    posted.map(({ status }) => status).filter((status) => !expected.has(status)),
    [],
  )
  // Of the requests that Redis accepted in its last second, only those with a 200 must be stored.
  await assertStored(
    sluice.db,
    posted.map((answer) => (answer.status === 504 ? { ...answer, status: 'none' } : answer)),
  )
})

function assertRefused({ status, body, headers, ms }: Posted): void {
  // A 504 is the answer to a request that was under way when Redis was killed.
  if (status === 504) assert.equal(body.code, 'acceptance_unknown')
  else {
    assert.deepEqual([status, body.code], [503, 'queue_unavailable'])
    assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/)
  }
  assert(ms < REFUSED_WITHIN_MS, `the refusal took ${ms} ms`)
}
