import assert from 'node:assert/strict'
import type { Thread } from '@sluice/contract'
import { connectFailFast } from '@sluice/process/redis'
import { requiredUrl, testQueueName, UNBOUNDED } from '@sluice/test-support'
import { it, type TestContext } from 'vitest'
import { createEnqueuer } from '../enqueue/enqueue.ts'
import { newJobId } from '../job/job.ts'
import { queueKeys } from '../job/lanes.ts'
import { IdempotencyKeyReusedError, RateLimitedError } from '../load/refusals.ts'
import { completed } from '../queue.test-support.ts'
import { CLAIM_MS, claimName, createRecordClaims, createResults } from './results.ts'

const RECEIPT = {
  source: { outcome: 'created', wordCount: 1, createdAt: '' },
  outcomes: 'c',
} as const
const DONE = { receipts: [RECEIPT] }

async function setUp(t: TestContext, claimBytes = UNBOUNDED.claimBytes) {
  const keys = queueKeys(testQueueName())
  const redis = connectFailFast({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  await new Promise((resolve) => redis.once('ready', resolve))
  const found = async (name = '') =>
    (await redis.keys(`${keys.prefix.replace('{', '\\{')}*`)).filter((key) =>
      key.startsWith(keys.base + name),
    )
  t.onTestFinished(async () => {
    await redis.unlink('none', ...(await found()))
    redis.disconnect()
  })
  const enqueuer = createEnqueuer(keys, redis, { ...UNBOUNDED, claimBytes })
  const record = createRecordClaims(redis, keys, claimBytes)
  return {
    keys,
    redis,
    found,
    /** Enqueues a request with a key, and returns the id of the job that it gets. */
    post(
      key: string,
      title = 'A',
      tenant = 't',
      quota?: { keyId: string; quotesPerSecond: number; burstQuotes: number },
    ) {
      const thread: Thread = { source: { service: 'custom', externalId: 'a', title }, quotes: [] }
      const job = {
        tenant,
        requestId: 'r',
        retained: false,
        claim: claimName(tenant, key),
        threads: [thread],
      }
      return enqueuer.enqueue(newJobId(), 'interactive', job, quota)
    },
    /** Stores the result of a key's job, and removes the job from the queue. */
    async complete(
      id: string,
      key: string,
      { tenant = 't', result = DONE }: { tenant?: string; result?: object } = {},
    ) {
      await record([
        completed(id, { data: { claim: claimName(tenant, key) }, result: { ...DONE, ...result } }),
      ])
      await redis.del(keys.jobs.interactive + id)
    },
    find: (key: string, jobId: string) =>
      createResults(redis, keys).findClaimed(claimName('t', key), jobId),
  }
}

it('gives equal requests that are enqueued at once with one key one job, and refuses another one', async (t) => {
  const { post } = await setUp(t)
  const [first, ...others] = await Promise.allSettled([
    post('k'),
    post('k'),
    post('k', 'B'),
    post('k'),
    post('l'),
  ])
  assert(first?.status === 'fulfilled')
  assert.deepEqual(
    others.map((one) => (one.status === 'fulfilled' ? one.value === first.value : one.reason.name)),
    [true, 'IdempotencyKeyReusedError', true, false],
  )
})

it('keeps the key after its job is done, with the result', async (t) => {
  const { post, complete, find } = await setUp(t)
  const id = await post('k')
  assert.equal(await find('k', id), undefined)
  await complete(id, 'k')
  assert.equal(await post('k'), id)
  assert.deepEqual(await find('k', id), DONE)
  await assert.rejects(post('k', 'B'), IdempotencyKeyReusedError)
})

it('frees the key of a job that failed for good, was discarded, or is gone', async (t) => {
  const { post, complete, find, redis, keys } = await setUp(t)
  const failed = await post('failed')
  await redis.zadd(`${keys.jobs.interactive}failed`, 1, failed)
  const gone = await post('gone')
  await redis.del(keys.jobs.interactive + gone)
  for (const [key, before] of [
    ['failed', failed],
    ['gone', gone],
  ] as const) {
    const id = await post(key, 'B')
    assert.notEqual(id, before)
    // An operator may still run the failed job. Its result is not that of the new one.
    await complete(before, key)
    assert.equal(await find(key, id), undefined)
    assert.equal(await post(key, 'B'), id)
  }
})

it('does not keep the result of a failure', async (t) => {
  const { post, complete, find } = await setUp(t)
  const id = await post('k')
  await complete(id, 'k', { result: { failure: 'broken' } })
  assert.equal(await find('k', id), undefined)
  assert.notEqual(await post('k'), id)
})

it('charges a replay, and claims nothing for a request that is refused', async (t) => {
  const { post, found } = await setUp(t)
  const quota = { keyId: 'q', quotesPerSecond: 0.001, burstQuotes: 1 }
  const id = await post('k', 'A', 't', quota)
  assert.equal(await post('k', 'A', 't', quota), id)
  await assert.rejects(post('l', 'A', 't', quota), RateLimitedError)
  assert.equal((await found('claim:')).length, 1)
})

it('forgets a key after 24 hours', async (t) => {
  const { post, complete, redis, keys } = await setUp(t)
  const id = await post('k')
  await complete(id, 'k')
  await post('l')
  const claim = `${keys.base}claim:${claimName('t', 'k')}`
  const ms = await redis.pttl(claim)
  assert(ms > CLAIM_MS - 60_000 && ms <= CLAIM_MS, `${ms} ms`)
  // As if a day had passed for this claim.
  const [index, oldest] = [`${keys.base}claims:of:t:age`, `${keys.base}claims:age`]
  await redis.del(claim)
  await redis.zincrby(index, -CLAIM_MS, claimName('t', 'k'))
  await redis.zincrby(oldest, -CLAIM_MS, 't')
  const next = await post('k', 'B')
  assert.notEqual(next, id)
  assert.equal(await post('k', 'B'), next)
  assert.equal(await redis.zcard(index), 2)
  assert.equal(await redis.get(`${keys.base}claims`), '2200')
})

const BYTES = 200_000

it('keeps keys within their bound in bytes, the oldest of the tenant with the most first to go', async (t) => {
  const { post, complete, found, redis } = await setUp(t, BYTES)
  const small = await post('small', 'A', 'quiet')
  await complete(small, 'small', { tenant: 'quiet' })
  let last = ''
  for (let at = 0; at < 400; at++) {
    last = await post(`k${at}`)
    await complete(last, `k${at}`, { result: { more: 'x'.repeat(at * 2) } })
  }
  const pipeline = redis.pipeline()
  const keys = await found('claim')
  for (const key of keys) pipeline.call('MEMORY', 'USAGE', key, 'SAMPLES', '0')
  const used = ((await pipeline.exec()) ?? []).reduce((sum, [, bytes]) => sum + Number(bytes), 0)
  assert(used > BYTES / 2 && used < BYTES, `${used} bytes in ${keys.length} keys`)
  assert.equal(await post('small', 'A', 'quiet'), small)
  assert.equal(await post('k399'), last)
  const evicted = await post('k0')
  assert.equal(await post('k0'), evicted)
})

it('evicts as many keys as one large result takes the place of', async (t) => {
  const { post, complete, found } = await setUp(t, BYTES)
  for (let at = 0; at < 240; at++) await complete(await post(`k${at}`), `k${at}`)
  const large = await post('large')
  await complete(large, 'large', { result: { more: 'x'.repeat(BYTES / 2) } })
  const left = (await found('claim:')).length
  assert(left > 80 && left < 130, `${left} claims`)
  assert.equal(await post('large'), large)
})
