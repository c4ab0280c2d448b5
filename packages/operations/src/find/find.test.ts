import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { FindQuery, Thread } from '@sluice/contract'
import { connectRetrying } from '@sluice/process/redis'
import { createEnqueuer, createImports, type Lane, newJobId, queueKeys } from '@sluice/queue'
import {
  BOUNDS,
  completed,
  createCompleteJobs,
  createFail,
  type JobInput,
} from '@sluice/queue/test-support'
import { requiredUrl, testQueueName, UNBOUNDED } from '@sluice/test-support'
import { it, type TestContext, vi } from 'vitest'
import { createFailedJobs } from '../failed/failed-jobs.ts'
import { createFind } from './find.ts'

const NOBODY = new AbortController().signal

function thread(externalId: string, quotes: string[] = []): Thread {
  const messages = quotes.map((id) => ({
    externalId: id,
    text: `says "externalId":"spoofed" ${id}`,
  }))
  return { source: { service: 'slack', externalId, title: 'T' }, quotes: messages }
}

/** Opens a queue. A job that is added has an id by which `find` finds it, as the API makes them. */
async function setUp(t: TestContext, recentBytes = BOUNDS.recentBytes) {
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  await once(redis, 'ready')
  const keys = queueKeys(testQueueName())
  const enqueuer = createEnqueuer(keys, redis, UNBOUNDED)
  const complete = createCompleteJobs(redis, keys, { ...BOUNDS, recentBytes }, 'here:1')
  const failedJobs = createFailedJobs(redis, keys)
  const find = createFind(redis, keys, failedJobs, async () => ({ hits: [], notes: ['none'] }))
  async function add(
    threads: Thread[],
    more: Partial<JobInput> = {},
    lane: Lane = 'interactive',
  ): Promise<string> {
    const id = newJobId(threads[0]?.source.externalId)
    await enqueuer.enqueue(id, lane, {
      tenant: 'acme',
      requestId: `r-${id}`,
      retained: false,
      threads,
      ...more,
    })
    return id
  }
  /** Ends a waiting job as a worker would. */
  async function lock(id: string, lane: Lane = 'interactive') {
    await redis.lrem(`${keys.jobs[lane]}wait`, 1, id)
    await redis.lpush(`${keys.jobs[lane]}active`, id)
    await redis.set(`${keys.jobs[lane]}${id}:lock`, 'token')
    return JSON.parse((await redis.hget(keys.jobs[lane] + id, 'data')) ?? '')
  }
  async function finish(id: string): Promise<void> {
    const source = {
      outcome: 'created',
      wordCount: 1,
      createdAt: '2024-05-01T00:00:00.000Z',
    } as const
    const result = { receipts: [{ source, outcomes: '' }] }
    await complete([
      completed(id, { data: await lock(id), token: 'token', enqueuedAt: Date.now(), result }),
    ])
  }
  async function fail(id: string, reason: string): Promise<void> {
    await createFail(redis, keys)(id, { data: await lock(id) }, reason)
  }
  const hitsOf = async (query: FindQuery) => (await find(query, NOBODY)).hits
  return { redis, keys, find, add, lock, finish, fail, hitsOf }
}

it('finds a thread by its externalId in each state, and in a job of several if it is the first', async (t) => {
  const { add, lock, finish, fail, hitsOf } = await setUp(t)
  const alone = await add([thread('C1')])
  const first = await add([thread('C1'), thread('C2'), thread('C3')], {}, 'bulk')
  const active = await add([thread('C1')])
  await lock(active)
  const failed = await add([thread('C0'), thread('C1'), thread('C2')])
  await fail(failed, 'Document failed validation')
  const done = await add([thread('C1')])
  await finish(done)
  await add([thread('C10')])
  await add([thread('C0'), thread('C1')], {}, 'bulk')
  const expected = [
    { id: alone, state: 'waiting', name: 'slack/C1' },
    { id: first, state: 'waiting', name: 'slack/C1 … slack/C3 (3)' },
    { id: active, state: 'active', name: 'slack/C1' },
    { id: failed, state: 'failed', name: 'slack/C0 … slack/C2 (3)' },
    { id: done, state: 'completed', name: 'slack/C1' },
  ]
  const byId = (one: { id: string }, other: { id: string }) => (one.id < other.id ? -1 : 1)
  for (const query of [{}, { tenant: 'acme' }, { service: 'slack' }] as const) {
    const hits = await hitsOf({ q: 'C1', ...query })
    // Ids of the same millisecond are in no order.
    assert.deepEqual(
      hits.map(({ id, state, name }) => ({ id, state, name })).sort(byId),
      expected.sort(byId),
    )
  }
  assert.deepEqual(
    (await hitsOf({ q: 'C1', reason: 'FAILED valid' })).map(({ id }) => id),
    [failed],
  )
  assert.deepEqual(await hitsOf({ q: 'C1', reason: 'timed out' }), [])
  assert.deepEqual(await hitsOf({ q: 'C1', tenant: 'other' }), [])
  assert.deepEqual(await hitsOf({ q: 'C1', service: 'zendesk' }), [])
})

it('finds a job and an import by their ids, and completed jobs also by their request', async (t) => {
  const { add, finish, hitsOf, redis, keys } = await setUp(t)
  const importId = newJobId()
  const enqueued = { tenant: 'acme', received: 1, jobs: 1, failed: 0, refused: [] }
  await createImports(redis, keys).open(importId, enqueued)
  const one = await add([thread('m "1"')], { import: { id: importId, places: [0] } })
  const other = await add([thread('C2')], { requestId: 'mine' })
  const idsOf = async (q: string) => (await hitsOf({ q })).map(({ id }) => id).sort()
  assert.deepEqual(await idsOf('m "1"'), [one])
  assert.deepEqual(await idsOf(importId), [importId])
  assert.deepEqual(await idsOf(other), [other])
  for (const q of ['mine', 'spoofed', 'C', 'slack/C2']) assert.deepEqual(await idsOf(q), [], q)
  await finish(one)
  await finish(other)
  assert.deepEqual(await idsOf(importId), [one, importId].sort())
  for (const q of ['mine', other, 'C2']) {
    const [found] = await hitsOf({ q })
    assert.deepEqual([found?.id, found?.state], [other, 'completed'], q)
    assert.deepEqual(found?.outcomes, { created: 1, updated: 0, unchanged: 0 })
    assert.equal(found?.worker, 'here:1')
  }
  assert.deepEqual(await hitsOf({ q: other, tenant: 'other' }), [])
})

it('finds one name among many, in steps, one look-up at a time, until the caller leaves', async (t) => {
  const { add, find, redis } = await setUp(t)
  // Not all at once: on a busy machine, the last ones would miss their deadline.
  for (let from = 0; from < 6_000; from += 1_000)
    await Promise.all(Array.from({ length: 1_000 }, (_, at) => add([thread(`T${from + at}`)])))
  const scan = vi.spyOn(redis, 'hscan')
  const found = await Promise.all(['T8', 'T9'].map((q) => find({ q }, NOBODY)))
  assert.deepEqual(
    found.map(({ hits }) => hits.map(({ name }) => name)),
    [['slack/T8'], ['slack/T9']],
  )
  const patterns = scan.mock.calls.map((args: readonly unknown[]) => args[3])
  assert(patterns.length >= 4)
  const [first] = patterns
  assert(
    patterns.lastIndexOf(first) < patterns.findIndex((pattern) => pattern !== first),
    'one after the other',
  )
  scan.mockClear()
  const leaving = new AbortController()
  const left = find({ q: 'T7' }, leaving.signal)
  leaving.abort(new Error('gone'))
  await assert.rejects(left, /gone/)
  assert.equal(scan.mock.calls.length, 1)
})

it('keeps the list of completed jobs within its bytes, the oldest go first', async (t) => {
  const { add, finish, hitsOf, redis, keys } = await setUp(t, 2_000)
  const ids: string[] = []
  for (let at = 0; at < 30; at++) ids.push(await add([thread(`R${at}`)]))
  for (const id of ids) await finish(id)
  assert.equal((await hitsOf({ q: 'R0' })).length, 0)
  assert.equal((await hitsOf({ q: 'R29' })).length, 1)
  const bytes = Number(await redis.get(`${keys.base}recent:bytes`))
  assert(bytes > 1_000 && bytes <= 2_000, `${bytes}`)
  assert((await redis.xlen(`${keys.base}recent`)) < 15)
})
