import assert from 'node:assert/strict'
import { it, type TestContext } from 'node:test'
import { requiredUrl, testQueueName } from '@sluice/test-support'
import { connectImpatient } from './connect-redis.ts'
import { queueKeys } from './queue-keys.ts'
import { createStamps } from './stamps.ts'

async function replica(t: TestContext, keys: ReturnType<typeof queueKeys>) {
  const redis = connectImpatient(requiredUrl('REDIS_URL'), () => {})
  await new Promise((resolve) => redis.once('ready', resolve))
  t.after(() => redis.disconnect())
  return { redis, take: createStamps(redis, keys) }
}

it('gives unique stamps, about now in µs, to two replicas that ask at once', async (t) => {
  const keys = queueKeys(testQueueName())
  const [one, other] = await Promise.all([replica(t, keys), replica(t, keys)])
  const stamps = await Promise.all(Array.from({ length: 500 }, (_, at) => (at % 2 ? one : other).take(1)))
  assert.equal(new Set(stamps).size, 500)
  const first = Math.min(...stamps) / 1000
  assert(Math.abs(first - Date.now()) < 60_000, `${first}`)
})

it('gives who asks after an answer a later stamp, whichever replica it asks', async (t) => {
  const keys = queueKeys(testQueueName())
  const [one, other] = await Promise.all([replica(t, keys), replica(t, keys)])
  let last = 0
  for (let round = 0; round < 50; round++) {
    const next = await (round % 2 ? one : other).take(1)
    assert(next > last)
    last = next
  }
})

it('goes on rising when Redis has lost its last stamp, and when its clock stands behind it', async (t) => {
  const keys = queueKeys(testQueueName())
  const { redis, take } = await replica(t, keys)
  const before = await take(1)
  await redis.del(`${keys.base}stamp`)
  const after = await take(1)
  assert(after > before)
  const ahead = after + 3_600_000_000
  await redis.set(`${keys.base}stamp`, ahead)
  assert.equal(await take(1), ahead + 1)
})
