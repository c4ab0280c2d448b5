import assert from 'node:assert/strict'
import { connectRetrying } from '@sluice/process/redis'
import { requiredUrl, testQueueName } from '@sluice/test-support'
import { type TestContext, test, vi } from 'vitest'
import { newJobId } from '../job/job.ts'
import { queueKeys } from '../job/lanes.ts'
import { createImports } from './imports.ts'

function open(t: TestContext) {
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  const keys = queueKeys(testQueueName())
  return { redis, imports: createImports(redis, keys), about: `${keys.base}import:` }
}

const request = (importId: string, more = {}) => ({
  ...{ importId, tenant: 'acme', by: 'a key', requestId: newJobId(), ended: 'part' as const },
  ...more,
})

const counts = (
  more: Partial<Record<'received' | 'created' | 'failed' | 'again' | 'open', number>>,
) => ({
  ...{ received: 0, created: 0, updated: 0, unchanged: 0, failed: 0, again: 0, open: 0 },
  ...more,
})

test('adds up the requests of one import, each by its last record, and ends with the last of them', async (t) => {
  const { imports } = open(t)
  const id = newJobId()
  const [first, second] = [request(id), request(id)]
  await imports.recordRequest(first, {
    counts: counts({ received: 5, created: 5, open: 1 }),
    problems: [],
  })
  await imports.recordRequest(second, {
    counts: counts({ received: 1, failed: 1 }),
    problems: [{ index: 0, externalId: 'C2' }],
  })
  assert.equal((await imports.find(id))?.done, false)
  await imports.recordRequest(first, {
    counts: counts({ received: 9, created: 7, again: 2 }),
    problems: [],
  })
  const found = await imports.find(id)
  assert.deepEqual(found?.counts, { created: 7, updated: 0, unchanged: 0, failed: 1 })
  assert.deepEqual([found?.by, found?.done, found?.received, found?.again], ['a key', true, 10, 2])
  assert.deepEqual(found?.problems, [{ index: 0, externalId: 'C2' }])
  const { problems: _, ...listed } = found ?? {}
  assert.deepEqual(await imports.list(), [{ id, ...listed }])
})

test('another tenant changes no import of whose id it knows', async (t) => {
  const { imports } = open(t)
  const id = newJobId()
  await imports.recordRequest(request(id), {
    counts: counts({ received: 1, created: 1 }),
    problems: [],
  })
  const before = await imports.find(id)
  await imports.recordRequest(request(id, { tenant: 'other' }), {
    counts: counts({ received: 1, failed: 1 }),
    problems: [{ index: 0 }],
  })
  assert.deepEqual(await imports.find(id), before)
  assert.equal((await imports.list()).length, 1)
})

test('reads a thousand problems of an import with thousands of requests, and all of its sums', async (t) => {
  const { redis, imports } = open(t)
  const id = newJobId()
  const record = (index: number, more = {}) =>
    imports.recordRequest(request(id), {
      counts: counts({ received: 2, created: 1, failed: 1 }),
      problems: [{ index, externalId: `C${index}` }],
      ...more,
    })
  for (let at = 0; at < 3_000; at += 500)
    await Promise.all(Array.from({ length: 500 }, (_, one) => record(at + one)))
  await record(3_000, {
    counts: counts({ received: 1, open: 1 }),
    problems: [],
    waitsFor: 'queue_full' as const,
  })
  const before = redis.stream.bytesRead
  const found = await imports.find(id, 'acme')
  const { received, counts: sums, problems, done, waitsFor } = found ?? {}
  assert.deepEqual([received, sums?.created, sums?.failed], [6_001, 3_000, 3_000])
  assert.deepEqual([problems?.length, done, waitsFor], [1_000, false, 'queue_full'])
  assert.ok(redis.stream.bytesRead - before < 250_000, `${redis.stream.bytesRead - before} bytes`)
  assert.equal(await imports.find(id, 'other'), undefined)
})

test('keeps no problems of further requests once an import has a thousand', async (t) => {
  const { imports } = open(t)
  const id = newJobId()
  const [first, second] = [request(id), request(id)]
  const problems = Array.from({ length: 1_000 }, (_, index) => ({ index, jobId: 'first' }))
  await imports.recordRequest(first, {
    counts: counts({ received: 1_000, failed: 1_000, open: 1 }),
    problems: problems.slice(0, 100),
  })
  await imports.recordRequest(second, {
    counts: counts({ received: 1, failed: 1 }),
    problems: [{ index: -1 }],
  })
  await imports.recordRequest(first, {
    counts: counts({ received: 1_000, failed: 1_000 }),
    problems: problems,
  })
  const found = await imports.find(id)
  assert.deepEqual([found?.counts.failed, found?.problems], [1_001, problems])
  // An outcome without its problems still says for what it waits.
  await imports.recordRequest(request(id), { counts: counts({ open: 1 }), waitsFor: 'queue_full' })
  assert.equal((await imports.find(id))?.waitsFor, 'queue_full')
})

test('says for which problem a request waits, until it ends', async (t) => {
  const { imports } = open(t)
  const id = newJobId()
  const one = request(id)
  await imports.recordRequest(one, { counts: counts({ open: 1 }), waitsFor: 'queue_full' })
  assert.equal((await imports.find(id))?.waitsFor, 'queue_full')
  await imports.recordRequest(one, { counts: counts({ received: 1, created: 1 }) })
  assert.equal((await imports.find(id))?.waitsFor, undefined)
})

test('an import whose API is gone counts as over', async (t) => {
  const { redis, imports, about } = open(t)
  const id = newJobId()
  await imports.recordRequest(request(id), {
    counts: counts({ received: 1, created: 1, open: 1 }),
    problems: [],
  })
  const now = Date.now
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + 60_000)
  t.onTestFinished(() => clock.mockRestore())
  const isDone = async () => [(await imports.find(id))?.done, (await imports.list())[0]?.done]
  assert.deepEqual(await isDone(), [false, false], 'the clock of this process does not count')
  const key = `${about}${id}:about`
  const totals = JSON.parse((await redis.hget(key, 'totals')) ?? '{}')
  await redis.hset(
    key,
    'totals',
    JSON.stringify({ ...totals, changedAt: totals.changedAt - 11_000 }),
  )
  assert.deepEqual(await isDone(), [true, true])
})
