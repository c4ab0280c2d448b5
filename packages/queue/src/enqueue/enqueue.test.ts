import assert from 'node:assert/strict'
import type { Thread } from '@sluice/contract'
import { connectFailFast } from '@sluice/process/redis'
import { requiredUrl, testQueueName, UNBOUNDED } from '@sluice/test-support'
import { it, type TestContext } from 'vitest'
import { newJobId } from '../job/job.ts'
import { queueKeys } from '../job/lanes.ts'
import {
  AcceptanceUnknownError,
  QueueFullError,
  QueueUnavailableError,
  refusalByRedis,
} from '../load/refusals.ts'
import { createJobAdder } from '../queue.test-support.ts'
import { createEnqueuer } from './enqueue.ts'

const THREAD: Thread = { source: { service: 'custom', externalId: 'a', title: 'A' }, quotes: [] }
/** Sets the last stamp of a load without jobs. */
const SET_STAMP =
  "redis.call('HSET', KEYS[1], 'all', cmsgpack.pack(0, 0, 0, 0, 0, 0, tonumber(ARGV[1])))"
const JOB = { tenant: 't', requestId: 'r', retained: false, threads: [THREAD] }

async function replica(t: TestContext, keys: ReturnType<typeof queueKeys>) {
  const redis = connectFailFast({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  await new Promise((resolve) => redis.once('ready', resolve))
  t.onTestFinished(() => redis.disconnect())
  const enqueue = createJobAdder(redis, keys)
  const add = () => enqueue({ id: newJobId(), lane: 'interactive', job: JOB })
  return { redis, enqueue, add }
}

it('two replicas that enqueue at once get unique stamps, about now in µs', async (t) => {
  const keys = queueKeys(testQueueName())
  const [one, other] = await Promise.all([replica(t, keys), replica(t, keys)])
  const stamps = await Promise.all(
    Array.from({ length: 500 }, (_, at) => (at % 2 ? one : other).add()),
  )
  assert.equal(new Set(stamps).size, 500)
  const first = Math.min(...stamps) / 1000
  assert(Math.abs(first - Date.now()) < 60_000, `${first}`)
})

it('a request that follows an answer gets a later stamp, on any replica', async (t) => {
  const keys = queueKeys(testQueueName())
  const [one, other] = await Promise.all([replica(t, keys), replica(t, keys)])
  let last = 0
  for (let round = 0; round < 50; round++) {
    const next = await (round % 2 ? one : other).add()
    assert(next > last)
    last = next
  }
})

it('goes on rising when Redis has lost its last stamp, and when its clock stands behind it', async (t) => {
  const keys = queueKeys(testQueueName())
  const { redis, add } = await replica(t, keys)
  const before = await add()
  await redis.del(`${keys.base}load`)
  const after = await add()
  assert(after > before)
  const ahead = after + 3_600_000_000
  await redis.eval(SET_STAMP, 1, `${keys.base}load`, ahead)
  assert.equal(await add(), ahead + 1)
})

it('goes on rising under another server, which lost the last stamps and whose clock is behind', async (t) => {
  const keys = queueKeys(testQueueName())
  const { redis, add } = await replica(t, keys)
  const load = `${keys.base}load`
  // The clock of the first server is five minutes ahead.
  const replicated = (await add()) + 300_000_000
  await redis.eval(SET_STAMP, 1, load, replicated)
  let last = 0
  for (let count = 0; count < 100; count++) last = await add()
  const ceiling = Number(await redis.hget(load, 'ceiling'))
  assert(ceiling - last > 5_000_000 && ceiling - last <= 10_000_000, `${ceiling - last}`)

  await redis.eval(SET_STAMP, 1, load, replicated)
  await redis.hset(load, 'server', 'another')
  const promoted = await add()
  assert(promoted > last)
  assert.equal(promoted, ceiling)
  // From then on this server goes on as usual, below a ceiling of its own.
  assert.equal(await add(), promoted + 1)
  assert.equal(Number(await redis.hget(load, 'ceiling')), promoted + 1 + 10_000_000)
  // A proxy may lead each connection to another server. The ceiling does not run away from the
  // clock.
  for (let count = 0; count < 100; count++) {
    await redis.hset(load, 'server', `another ${count}`)
    last = await add()
  }
  assert(last - Date.now() * 1_000 < 660_000_000, `${last}`)
  await redis.hset(load, 'server', 'another')
  assert((await add()) > last)
})

it('a job of several threads gets a stamp for each, and has the first in its data', async (t) => {
  const keys = queueKeys(testQueueName())
  const { redis, enqueue, add } = await replica(t, keys)
  const [first, next] = await Promise.all([
    enqueue({ id: 'several', lane: 'bulk', job: { ...JOB, threads: [THREAD, THREAD, THREAD] } }),
    add(),
  ])
  assert.equal(next, first + 3)
  const data = await redis.hget(`${keys.jobs.bulk}several`, 'data')
  assert.deepEqual(JSON.parse(data ?? ''), {
    ...JOB,
    stamp: first,
    threads: [THREAD, THREAD, THREAD],
  })
})

it('sends its script again to a Redis that has lost it', async (t) => {
  const keys = queueKeys(testQueueName())
  const { redis, add } = await replica(t, keys)
  const before = await add()
  await redis.script('FLUSH')
  assert((await add()) > before)
})

it('does not know whether a job was accepted if its script fails after a write, and refuses it if before', async (t) => {
  const keys = queueKeys(testQueueName())
  const { redis } = await replica(t, keys)
  const { enqueue } = createEnqueuer(keys, redis, UNBOUNDED)
  await redis.set(`${keys.base}load:jobs`, 'no hash')
  await assert.rejects(enqueue('a', 'bulk', JOB), AcceptanceUnknownError)
  assert.equal(await redis.exists(`${keys.jobs.bulk}a`), 1)
  for (const reply of [
    "READONLY You can't write against a read only replica. script: 0123, on @user_script:7.",
    'ERR Error running script (call to f_0123): @user_script:7: MISCONF Redis is configured to save RDB snapshots',
    'BUSY Redis is busy running a script.',
  ])
    assert(refusalByRedis(new Error(reply)) instanceof QueueUnavailableError, reply)
  for (const [before, after] of [
    ['', ' script: 0123, on @user_script:7.'],
    ['ERR Error running script (call to f_0123): @user_script:7: @user_script: 7: -', ''],
  ]) {
    const reply = `${before}OOM command not allowed when used memory > 'maxmemory'.${after}`
    assert(refusalByRedis(new Error(reply)) instanceof QueueFullError, reply)
  }
})
