import assert from 'node:assert/strict'
import type { Thread } from '@sluice/contract'
import { requiredUrl, testQueueName } from '@sluice/test-support'
import { it, type TestContext } from 'vitest'
import { connectImpatient } from './connect-redis.ts'
import { createEnqueueJobs } from './enqueue-jobs.ts'
import { newJobId } from './enqueuer.ts'
import { queueKeys } from './queue-keys.ts'

const THREAD: Thread = { source: { service: 'custom', externalId: 'a', title: 'A' }, quotes: [] }
const JOB = { tenant: 't', requestId: 'r', told: false, threads: [THREAD] }

async function replica(t: TestContext, keys: ReturnType<typeof queueKeys>) {
  const redis = connectImpatient(requiredUrl('REDIS_URL'), () => {})
  await new Promise((resolve) => redis.once('ready', resolve))
  t.onTestFinished(() => redis.disconnect())
  const enqueue = createEnqueueJobs(redis, keys)
  const take = () => enqueue({ id: newJobId(), lane: 'waiting', job: JOB })
  return { redis, enqueue, take }
}

it('gives unique stamps, about now in µs, to two replicas that ask at once', async (t) => {
  const keys = queueKeys(testQueueName())
  const [one, other] = await Promise.all([replica(t, keys), replica(t, keys)])
  const stamps = await Promise.all(Array.from({ length: 500 }, (_, at) => (at % 2 ? one : other).take()))
  assert.equal(new Set(stamps).size, 500)
  const first = Math.min(...stamps) / 1000
  assert(Math.abs(first - Date.now()) < 60_000, `${first}`)
})

it('gives who asks after an answer a later stamp, whichever replica it asks', async (t) => {
  const keys = queueKeys(testQueueName())
  const [one, other] = await Promise.all([replica(t, keys), replica(t, keys)])
  let last = 0
  for (let round = 0; round < 50; round++) {
    const next = await (round % 2 ? one : other).take()
    assert(next > last)
    last = next
  }
})

it('goes on rising when Redis has lost its last stamp, and when its clock stands behind it', async (t) => {
  const keys = queueKeys(testQueueName())
  const { redis, take } = await replica(t, keys)
  const before = await take()
  await redis.del(`${keys.base}stamp`)
  const after = await take()
  assert(after > before)
  const ahead = after + 3_600_000_000
  await redis.set(`${keys.base}stamp`, ahead)
  assert.equal(await take(), ahead + 1)
})

it('gives a job of several threads a stamp for each, and writes the first into its data', async (t) => {
  const keys = queueKeys(testQueueName())
  const { redis, enqueue, take } = await replica(t, keys)
  const [first, next] = await Promise.all([
    enqueue({ id: 'several', lane: 'bulk', job: { ...JOB, threads: [THREAD, THREAD, THREAD] } }),
    take(),
  ])
  assert.equal(next, first + 3)
  const data = await redis.hget(`${keys.jobs.bulk}several`, 'data')
  assert.deepEqual(JSON.parse(data ?? ''), { ...JOB, stamp: first, threads: [THREAD, THREAD, THREAD] })
})

it('leaves a job as it is that is sent again', async (t) => {
  const keys = queueKeys(testQueueName())
  const { redis, enqueue } = await replica(t, keys)
  await enqueue({ id: 'twice', lane: 'waiting', job: JOB })
  const data = await redis.hget(`${keys.jobs.waiting}twice`, 'data')
  await enqueue({ id: 'twice', lane: 'waiting', job: JOB })
  assert.equal(await redis.hget(`${keys.jobs.waiting}twice`, 'data'), data)
  assert.deepEqual(await redis.lrange(`${keys.jobs.waiting}wait`, 0, -1), ['twice'])
})
