import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Thread } from '@sluice/contract'
import { connectRetrying } from '@sluice/process/redis'
import { requiredUrl, testQueueName, UNBOUNDED } from '@sluice/test-support'
import { it, type TestContext } from 'vitest'
import { createEnqueuer } from '../enqueue/enqueue.ts'
import { type Lane, newJobId } from '../job/job.ts'
import { queueKeys } from '../job/lanes.ts'
import { consume } from '../queue.test-support.ts'
import { createFetchJobs, createLocks } from './fetch-jobs.ts'

const LEASE_MS = 50
const LONG_MS = 3_600_000
const THREAD: Thread = { source: { service: 'custom', externalId: 'a', title: 'A' }, quotes: [] }

async function setUp(t: TestContext) {
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  await once(redis, 'ready')
  t.onTestFinished(() => redis.disconnect())
  const keys = queueKeys(testQueueName())
  const { enqueue } = createEnqueuer(keys, redis, UNBOUNDED)
  const over = Promise.withResolvers<never>()
  over.promise.catch(() => {})
  const begun: string[] = []
  let onBegin = () => {}
  const add = (count: number, lane: Lane = 'interactive') =>
    Promise.all(
      Array.from({ length: count }, () =>
        enqueue(newJobId(), lane, {
          tenant: 't',
          requestId: 'r',
          retained: false,
          threads: [THREAD],
        }),
      ),
    )
  return {
    redis,
    keys,
    lease: `${keys.base}lease:interactive`,
    marker: keys.markers.interactive,
    add,
    /**
     * Fetches at most `jobs` as this worker. Returns their number, and after how many ms the worker
     * must look again.
     */
    async fetch(worker: string, jobs = 100, lane: Lane = 'interactive') {
      const fetchJobs = createFetchJobs(redis, keys, worker, LONG_MS)
      const fetched = await fetchJobs(lane, `${worker}:1`, {
        jobs,
        bytes: 1_000_000,
        isEmpty: true,
      })
      return [fetched.jobs.length, fetched.lookAfterMs]
    },
    begun,
    /** Resolves when workers have begun this number of jobs. */
    async begin(count: number) {
      while (begun.length < count) await new Promise<void>((resolve) => (onBegin = resolve))
    },
    /**
     * Starts a worker whose jobs do not end during the test, and which is ready for only this
     * number of fetches.
     */
    consume(worker: string, fetches = Number.POSITIVE_INFINITY) {
      let left = fetches
      const lastFetch = Promise.withResolvers<void>()
      const failed = Promise.withResolvers<Error>()
      const consumer = consume(keys, redis, {
        concurrency: { interactive: 100, bulk: 1 },
        async ready(lane) {
          if (lane === 'bulk' || left === 0) return over.promise
          left -= 1
          if (left === 0) lastFetch.resolve()
        },
        work() {
          begun.push(worker)
          onBegin()
          return over.promise
        },
        onError: failed.resolve,
      })
      t.onTestFinished(() => {
        over.reject(new Error('the test is over'))
        return consumer.close(1_000)
      })
      return { consumer, lastFetch: lastFetch.promise, failed: failed.promise }
    },
  }
}

it('leases the lane for 50 ms to the worker that fetched several jobs', async (t) => {
  const { add, fetch, redis, lease } = await setUp(t)
  let holder: string | null = null
  // On a busy machine, the lease may end before it is read.
  for (let attempts = 0; holder === null && attempts < 20; attempts++) {
    await add(2)
    const [, found, ms] = await Promise.all([fetch('a'), redis.get(lease), redis.pttl(lease)])
    holder = found
    assert.ok(ms <= LEASE_MS, `${ms} ms`)
  }
  assert.equal(holder, 'a')
})

it('leaves a few jobs to the worker with the lease, and has one other worker look when it ends', async (t) => {
  const { add, fetch, redis, lease, marker } = await setUp(t)
  await redis.set(lease, 'a', 'PX', LONG_MS)
  await add(1)
  const [left, lookAfterMs = 0] = await fetch('b')
  assert.equal(left, 0)
  // The lease may last longer only because the clock of Redis was moved back.
  assert.ok(lookAfterMs > 0 && lookAfterMs <= LEASE_MS, `${lookAfterMs} ms`)
  await redis.set(`${lease}:looker`, 'b', 'PX', LONG_MS)
  await redis.del(marker)
  assert.deepEqual(await fetch('c'), [0, undefined])
  assert.equal(await redis.exists(marker), 0)
  assert.deepEqual(await fetch('a'), [1, undefined])
})

it('lets any worker fetch at once if the last fetch got one job, or none', async (t) => {
  const { add, fetch } = await setUp(t)
  await add(2)
  assert.deepEqual(await Promise.all([fetch('a', 1), fetch('b', 1)]), [
    [1, undefined],
    [1, undefined],
  ])
  await add(3)
  assert.deepEqual(await Promise.all([fetch('a', 2), fetch('a', 0), fetch('b')]), [
    [2, undefined],
    [0, undefined],
    [1, undefined],
  ])
})

it('lets any worker fetch once enough jobs for a large batch wait', async (t) => {
  const { add, fetch, redis, lease } = await setUp(t)
  await redis.set(lease, 'a')
  await add(49)
  assert.equal((await fetch('b'))[0], 0)
  await add(1)
  assert.deepEqual(await fetch('b'), [50, undefined])
})

it('fetches from the interactive lane at once while another worker is busy with bulk jobs', async (t) => {
  const { add, fetch } = await setUp(t)
  await Promise.all([add(3, 'bulk'), add(1)])
  assert.deepEqual(await Promise.all([fetch('a', 2, 'bulk'), fetch('b')]), [
    [2, undefined],
    [1, undefined],
  ])
})

it('fetches the jobs that were left to a worker that hangs', async (t) => {
  const { add, begun, begin, consume } = await setUp(t)
  await add(2)
  consume('hangs', 1)
  await begin(2)
  consume('looks')
  await add(1)
  const since = performance.now()
  await begin(3)
  assert.deepEqual(begun, ['hangs', 'hangs', 'looks'])
  // Without a look, the job would wait until the block ends, after 5 s.
  assert.ok(performance.now() - since < 4_500)
})

it('lets another worker fetch the jobs if the one that would have looked is paused', async (t) => {
  const { add, begun, begin, consume, redis, lease } = await setUp(t)
  await redis.set(lease, 'hangs', 'PX', 1_500)
  const { consumer: looker } = consume('looks')
  await add(1)
  // While the lock `looker` is taken, the idle worker does not look by itself.
  while ((await redis.exists(`${lease}:looker`)) === 0);
  await looker.pause()
  consume('idle')
  const since = performance.now()
  await begin(1)
  assert.deepEqual(begun, ['idle'])
  assert.ok(performance.now() - since < 4_500)
})

it('fetches all jobs that were added together at once, although it was blocked', async (t) => {
  const { add, begin, consume } = await setUp(t)
  // The first fetch gets nothing, so the second one blocks.
  await consume('a', 2).lastFetch
  await add(10)
  await begin(10)
})

it('fetches the jobs that wait although the fetch for which it was woken failed', async (t) => {
  const { add, begin, consume, redis, keys } = await setUp(t)
  const delayed = `${keys.jobs.interactive}delayed`
  await add(1)
  const { failed } = consume('a')
  await begin(1)
  // The worker blocks now, or is about to.
  await redis.set(delayed, 'no sorted set')
  await add(1)
  await failed
  await redis.del(delayed)
  const since = performance.now()
  await begin(2)
  assert.ok(performance.now() - since < 4_500)
})

it('lets locks, leases and checks end soon that a server whose clock was ahead has set', async (t) => {
  const { redis, keys, lease, add, fetch } = await setUp(t)
  await add(3)
  await fetch('gone', 3)
  const checked = `${keys.jobs.interactive}stalled-check`
  for (const key of [lease, checked]) await redis.set(key, 'gone', 'PX', LONG_MS)
  const locks = createLocks(redis, keys, 'interactive', 5_000)
  const locked = await redis.lrange(`${keys.jobs.interactive}active`, '0', '-1')
  assert.equal(locked.length, 3)
  const left = () =>
    Promise.all(
      [lease, checked, ...locked.map((id) => `${keys.jobs.interactive}${id}:lock`)].map((key) =>
        redis.pttl(key),
      ),
    )
  await locks.shorten()
  const shortened = await left()
  assert.ok(
    shortened.every((ms) => ms > 0 && ms <= 5_000),
    shortened.join(),
  )
  await locks.shorten()
  assert.ok((await left()).every((ms, at) => ms <= (shortened[at] ?? 0)))
})

it('fetches a job whose next attempt was set by a worker whose clock was an hour ahead', async (t) => {
  const { redis, keys, add, fetch } = await setUp(t)
  await add(1)
  const [id = ''] = await redis.lrange(`${keys.jobs.interactive}wait`, 0, -1)
  await redis.lrem(`${keys.jobs.interactive}wait`, 0, id)
  await redis.zadd(`${keys.jobs.interactive}delayed`, (Date.now() + LONG_MS) * 0x1000, id)
  assert.deepEqual(await fetch('a'), [1, undefined])
})

it('lets them end soon, too, when the clock of Redis is moved back', async (t) => {
  const { redis, keys, lease, add, begin, consume } = await setUp(t)
  const checked = `${keys.jobs.interactive}stalled-check`
  await add(2)
  consume('a')
  const fetchJobs: (...args: unknown[]) => Promise<unknown[]> = Reflect.get(redis, 'sluice:fetch')
  let movedMs = 0
  Reflect.set(redis, 'sluice:fetch', async (...args: unknown[]) => {
    const reply = await fetchJobs.apply(redis, args)
    return reply.with(4, Number(reply[4]) - movedMs)
  })
  await begin(2)
  // Before the reply to the next fetch, which is on its way.
  movedMs = LONG_MS
  await Promise.all([lease, checked].map((key) => redis.set(key, 'gone', 'PX', LONG_MS)))
  while ((await redis.pttl(lease)) > 5_000 || (await redis.pttl(checked)) > 5_000)
    await new Promise(setImmediate)
})
