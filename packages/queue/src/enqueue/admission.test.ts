import assert from 'node:assert/strict'
import { connectFailFast, connectRetrying } from '@sluice/process/redis'
import { requiredUrl, testQueueName, UNBOUNDED } from '@sluice/test-support'
import type { Redis } from 'ioredis'
import { describe, it, type TestContext, vi } from 'vitest'
import { type Capacity, createFetchJobs } from '../consume/fetch-jobs.ts'
import { createMoveFailed } from '../failed/failed-set.ts'
import { type Lane, newJobId } from '../job/job.ts'
import { type QueueKeys, queueKeys } from '../job/lanes.ts'
import { createLoadAudit, createLoadCopy, type QueueBounds } from '../load/load-copy.ts'
import { QueueFullError, type Quota, RateLimitedError } from '../load/refusals.ts'
import {
  completed,
  createCompleteJobs,
  createFail,
  createReadLoad,
  tenantThreads,
} from '../queue.test-support.ts'
import { createEnqueuer } from './enqueue.ts'

const capacity = (jobs: number): Capacity => ({ jobs, bytes: 1_000_000, isEmpty: true })

/** A queue with one replica that enqueues, and what its load is by Redis. */
async function setUp(t: TestContext, bounds: Partial<QueueBounds> = {}) {
  const keys = queueKeys(testQueueName())
  const redis = connectFailFast({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  const worker = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  await Promise.all(
    [redis, worker].map((one) => new Promise((resolve) => one.once('ready', resolve))),
  )
  t.onTestFinished(() => [redis, worker].forEach((one) => void one.disconnect()))
  const enqueuer = createEnqueuer(keys, redis, { ...UNBOUNDED, ...bounds })
  const completeJobs = createCompleteJobs(worker, keys)
  const fetchJobs = createFetchJobs(worker, keys, 'a-worker', 60_000)
  return {
    keys,
    redis,
    enqueuer,
    async add({
      tenant = 't',
      lane = 'bulk',
      threads = 1,
      quotes = 0,
      text = '',
      quota,
    }: Partial<Added> = {}) {
      const quote = { text }
      const thread = {
        source: { service: 'custom', externalId: 'a', title: 'A' } as const,
        quotes: Array(quotes).fill(quote),
      }
      const id = newJobId()
      const job = { tenant, requestId: 'r', retained: false, threads: Array(threads).fill(thread) }
      await enqueuer.enqueue(id, lane, job, quota)
      return id
    },
    async completeAll() {
      const { jobs } = await fetchJobs('bulk', 'token', capacity(1_000))
      if (jobs.length === 0) return
      await completeJobs(jobs.map(({ id, lane }) => completed(id, { lane, token: 'token' })))
    },
    fetchJobs,
    load: createReadLoad(redis, keys),
    threadsOf: (tenant: string) => tenantThreads(redis, keys, tenant),
  }
}

interface Added {
  tenant: string
  lane: Lane
  threads: number
  quotes: number
  text: string
  quota: Quota
}

/** How many of the attempts were refused, by the bound. Every other rejection fails the test. */
async function refusals(attempts: Promise<unknown>[]): Promise<Record<string, number>> {
  const counts = { full: 0, share: 0, rate: 0 }
  for (const one of await Promise.allSettled(attempts)) {
    if (one.status === 'fulfilled') continue
    if (one.reason instanceof QueueFullError) counts[one.reason.bound] += 1
    else if (one.reason instanceof RateLimitedError) counts.rate += 1
    else throw one.reason
  }
  return counts
}

const many = <Result>(count: number, make: (at: number) => Result) =>
  Array.from({ length: count }, (_, at) => make(at))

describe('the bounds of the queue', () => {
  it('keeps the bound of threads exactly under many parallel callers, over both lanes', async (t) => {
    const { add, load } = await setUp(t, { queueThreads: 100 })
    const attempts = many(640, (at) =>
      add({ lane: at % 2 ? 'bulk' : 'interactive', tenant: `t${at % 3}` }),
    )
    assert.deepEqual(await refusals(attempts), { full: 540, share: 0, rate: 0 })
    const { threads, drained } = await load()
    assert.deepEqual([threads, drained], [100, 0])
  })

  it('keeps the bound of bytes', async (t) => {
    const { add, load } = await setUp(t, { queueBytes: 50_000 })
    const { full } = await refusals(many(20, () => add({ quotes: 1, text: 'x'.repeat(10_000) })))
    assert.equal(full, 16)
    assert((await load()).bytes <= 50_000)
  })

  it('bounds each tenant to its share', async (t) => {
    const { add, load, threadsOf } = await setUp(t, { queueThreads: 100, tenantShare: 0.3 })
    const attempts = many(300, (at) => add({ tenant: `t${at % 3}` }))
    assert.deepEqual(await refusals(attempts), { full: 0, share: 210, rate: 0 })
    const [first, second, all] = await Promise.all([threadsOf('t0'), threadsOf('t1'), load()])
    assert.deepEqual([first, second, all.threads], [30, 30, 90])
  })

  it('bounds the interactive threads apart from the whole, and names the bound of all before the share', async (t) => {
    const { add } = await setUp(t, { waitingSeconds: 1, tenantShare: 0.5 })
    assert.deepEqual(await refusals(many(300, () => add({ lane: 'interactive' }))), {
      full: 0,
      share: 50,
      rate: 0,
    })
    assert.deepEqual(await refusals(many(300, () => add({ lane: 'interactive', tenant: 'u' }))), {
      full: 50,
      share: 0,
      rate: 0,
    })
    assert.deepEqual(
      await refusals([add({ lane: 'interactive', tenant: 'v' }), add({ lane: 'bulk' })]),
      {
        full: 1,
        share: 0,
        rate: 0,
      },
    )
  })

  it('has tenants take turns in the interactive lane, however many posts of each are open', async (t) => {
    const { add, fetchJobs } = await setUp(t)
    const addMany = (count: number, tenant: string) =>
      Promise.all(many(count, () => add({ lane: 'interactive', tenant })))
    const fetch = async (count: number) => {
      const { jobs } = await fetchJobs('interactive', 'token', capacity(count))
      return Map.groupBy(jobs, ({ data }) => data.tenant)
    }
    await addMany(300, 'loud')
    await addMany(60, 'quiet')
    const first = await fetch(100)
    assert.deepEqual([first.get('loud')?.length, first.get('quiet')?.length], [50, 50])
    // A tenant that goes on to post does not keep the flood from its turns.
    for (let times = 0; times < 5; times++) {
      await addMany(20, 'quiet')
      const next = await fetch(40)
      assert((next.get('loud')?.length ?? 0) >= 10, `${next.get('loud')?.length}`)
    }
    await addMany(1, 'newcomer')
    assert.equal((await fetch(4)).get('newcomer')?.length, 1)
  })

  it('accepts again what was completed, and counts each job once', async (t) => {
    const { add, load, threadsOf, completeAll } = await setUp(t, { queueThreads: 10 })
    await refusals(many(12, () => add()))
    await completeAll()
    await completeAll()
    const [{ threads, bytes, drained }, ofTenant] = await Promise.all([load(), threadsOf('t')])
    assert.deepEqual([threads, bytes, ofTenant, drained], [0, 0, 0, 10])
    assert.deepEqual(await refusals(many(12, () => add())), { full: 2, share: 0, rate: 0 })
  })

  it('counts a job that failed for good no more, and counts it again when it is retried', async (t) => {
    const { add, load, keys, redis, fetchJobs } = await setUp(t)
    const id = await add({ threads: 3 })
    const full = await load()
    const [job] = (await fetchJobs('bulk', 'token', capacity(1))).jobs
    assert.equal(job?.id, id)
    await createFail(redis, keys)(id, { lane: 'bulk' })
    assert.equal((await load()).threads, 0)
    assert.equal(await createMoveFailed(redis, keys)('retry', [id], 'ada'), 1)
    await fetchJobs('bulk', 'other', capacity(1))
    assert.deepEqual(await load(), { ...full, drained: 3 })
    assert.equal(await redis.hexists(`${keys.jobs.bulk}${id}`, 'load'), 0)
  })

  it('counts jobs no more that BullMQ removed', async (t) => {
    const { add, load, keys, redis, enqueuer } = await setUp(t)
    const [kept, removed] = [await add(), await add()]
    await (await enqueuer.queues.bulk.getJob(removed))?.remove()
    await createLoadAudit(redis, keys)()
    assert.equal((await load()).threads, 1)
    assert.deepEqual(await redis.hkeys(`${keys.base}load:jobs`), [kept])
  })

  it('lets jobs wait again that are in no list, because somebody renamed or removed it', async (t) => {
    const { add, load, keys, redis, fetchJobs } = await setUp(t)
    const audit = createLoadAudit(redis, keys)
    const waiting = await Promise.all(many(2, () => add()))
    assert.equal(await audit(), 'right')
    const before = await load()
    await redis.rename(`${keys.jobs.bulk}wait`, `${keys.jobs.bulk}elsewhere`)
    assert.deepEqual([await audit(), await audit()], ['relisted', 'right'])
    assert.deepEqual(await load(), before)
    const fetched = (await fetchJobs('bulk', 'token', capacity(9))).jobs.map(({ id }) => id)
    assert.deepEqual(fetched, waiting.sort())
    // A worker still has these.
    await redis.del(`${keys.jobs.bulk}active`)
    assert.equal(await audit(), 'right')
  })

  it('corrects totals that another version left wrong, in both directions', async (t) => {
    const { add, load, keys, redis, threadsOf } = await setUp(t)
    const audit = createLoadAudit(redis, keys)
    await redis.hset(`${keys.base}load`, `failed:${keys.jobs.bulk}`, -49)
    for (const tenant of ['t', 'other']) await add({ tenant, threads: 2, lane: 'interactive' })
    const right = await load()
    assert.equal(await audit(), 'right')
    assert.equal(await redis.hget(`${keys.base}load`, `failed:${keys.jobs.bulk}`), null)
    const set = "redis.call('HSET', KEYS[1], ARGV[1], cmsgpack.pack(unpack(cjson.decode(ARGV[2]))))"
    for (const wrong of [7, -7]) {
      await redis.eval(
        set,
        1,
        `${keys.base}load`,
        'all',
        JSON.stringify([wrong, wrong, wrong, wrong, 0, 0, 9]),
      )
      for (const tenant of ['t', 'gone']) {
        await redis.eval(
          set,
          1,
          `${keys.base}load`,
          `of:${tenant}`,
          JSON.stringify([wrong, wrong, wrong]),
        )
      }
      assert.equal((await load()).threads, wrong)
      assert.deepEqual([await audit(), await audit()], ['corrected', 'right'])
      assert.deepEqual(await load(), right)
      assert.deepEqual(await Promise.all(['t', 'other', 'gone'].map(threadsOf)), [2, 2, 0])
    }
  })

  it('says when to come again: soon, and after a minute once nothing has drained for a while', async (t) => {
    const { add } = await setUp(t, { queueThreads: 10 })
    await refusals(many(10, () => add()))
    const waits: number[] = []
    do {
      const [refused] = await Promise.allSettled([
        add(),
        new Promise((resolve) => setTimeout(resolve, 50)),
      ])
      assert(refused.status === 'rejected' && refused.reason instanceof QueueFullError)
      waits.push(refused.reason.retryAfter)
    } while ((waits.at(-1) ?? 0) < 50 && waits.length < 100)
    assert(waits.every((seconds) => Number.isInteger(seconds) && seconds >= 1 && seconds <= 60))
    assert((waits[0] ?? 0) < 5 && (waits.at(-1) ?? 0) >= 50, waits.join())
  })

  it('refuses early while the copy is fresh, and lets requests through when it is too old', async (t) => {
    const { add, enqueuer } = await setUp(t, { queueThreads: 10 })
    const admit = () => enqueuer.admit({ tenant: 't' }, 'bulk')
    admit()
    await refusals(many(10, () => add()))
    // A busy machine may look at the copy when it is too old.
    await vi.waitFor(async () => {
      await refusals([add()])
      assert.throws(admit, QueueFullError)
    }, 60_000)
    const copiedAt = performance.now()
    while (performance.now() - copiedAt < 300)
      await new Promise((resolve) => setTimeout(resolve, 50))
    assert.doesNotThrow(admit)
  })
})

/** The level of the bucket of the key `k`, in quotes. */
async function levelIn(redis: Redis, { base }: QueueKeys): Promise<number> {
  const read = `return math.floor((cmsgpack.unpack(redis.call('GET', KEYS[1]))))`
  return Number(await redis.eval(read, 1, `${base}bucket:k`))
}

describe('the quota of a key', () => {
  const quota: Quota = { keyId: 'k', quotesPerSecond: 1, burstQuotes: 100 }

  it('charges each quote, and at least one for each thread; allows debt; and refuses while the bucket is empty', async (t) => {
    const { add, redis, keys } = await setUp(t)
    await add({ quota, quotes: 60 })
    await add({ quota, threads: 30 })
    const level = () => levelIn(redis, keys)
    assert(Math.abs((await level()) - 10) < 2, `${await level()}`)
    await add({ quota, quotes: 110 })
    assert(Math.abs((await level()) + 100) < 3, `${await level()}`)
    const [refused] = await Promise.allSettled([add({ quota })])
    assert(refused.status === 'rejected' && refused.reason instanceof RateLimitedError)
    assert(Math.abs(refused.reason.retryAfter - 100) < 3, `${refused.reason.retryAfter}`)
    const ttl = await redis.pttl(`${keys.base}bucket:k`)
    assert(ttl > 190_000 && ttl <= 202_000, `${ttl}`)
    await add({ quota: { ...quota, keyId: 'another' } })
  })

  it('counts a bucket as full if the clock of Redis was moved back since', async (t) => {
    const { add, redis, keys } = await setUp(t)
    const empty = `local now = redis.call('TIME')[1] * 1000000
      redis.call('SET', KEYS[1], cmsgpack.pack(-50, now + ARGV[1] * 1000000))`
    await redis.eval(empty, 1, `${keys.base}bucket:k`, 0)
    assert.deepEqual(await refusals([add({ quota })]), { full: 0, share: 0, rate: 1 })
    await redis.eval(empty, 1, `${keys.base}bucket:k`, 3_600)
    await add({ quota, quotes: 10 })
    assert(Math.abs((await levelIn(redis, keys)) - 90) < 2)
  })

  it('charges nothing for what is refused', async (t) => {
    const { add, redis, keys } = await setUp(t, { queueThreads: 1 })
    await add()
    assert.deepEqual(await refusals(many(5, () => add({ quota, quotes: 50 }))), {
      full: 5,
      share: 0,
      rate: 0,
    })
    assert.equal(await redis.exists(`${keys.base}bucket:k`), 0)
  })

  it('comes before the bounds of the queue, and charges for refused work on request', async (t) => {
    const { add, enqueuer, redis, keys } = await setUp(t, { queueThreads: 1 })
    await add()
    enqueuer.charge({ tenant: 't', quota }, 150)
    assert.deepEqual(await refusals([add({ quota })]), { full: 0, share: 0, rate: 1 })
    assert.throws(() => enqueuer.admit({ tenant: 't', quota }, 'bulk'), RateLimitedError)
    assert((await levelIn(redis, keys)) < 0)
  })

  it('refuses early by a copy of any age, until the bucket is refilled', () => {
    const copy = createLoadCopy(UNBOUNDED)
    const caller = { tenant: 't', quota }
    copy.noteCaller(caller, { threads: 0, bytes: 0, interactive: 0 }, -60, 0)
    const refusalAt = (now: number) => copy.refusalOf(caller, 'bulk', now)
    const refusal = refusalAt(20_000)
    assert(refusal instanceof RateLimitedError && refusal.retryAfter === 40)
    assert.equal(refusalAt(61_000), undefined)
  })
})

describe('the deadline of a request', () => {
  it('accepts no job whose deadline has passed', async (t) => {
    const { add, redis, keys, load } = await setUp(t)
    await add()
    // The very command that enqueueing sends, as if its bytes had been delayed.
    const late = async (jobId: string) => {
      const entry = {
        caller: 1,
        deadline: (Date.now() - 1) * 1000,
        quotes: 1,
        lane: keys.jobs.bulk,
        id: jobId,
      }
      const entries = [{ ...entry, name: 'name', threads: 1 }]
      const bounds = { most: { threads: 10, bytes: 1e9, interactive: 10 }, share: 1 }
      const about = {
        interactive: keys.jobs.interactive,
        server: 'server',
        callers: [{ tenant: 't' }],
      }
      const args = [JSON.stringify({ ...about, ...bounds, entries }), '{}', '}']
      const [, , , [outcome]] = await Reflect.get(redis, 'sluice:enqueue').call(
        redis,
        keys.base,
        ...args,
      )
      return outcome
    }
    assert.equal(await late(newJobId()), 'late')
    assert.equal((await load()).threads, 1)
  })
})
