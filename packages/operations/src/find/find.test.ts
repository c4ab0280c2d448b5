import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { FindLine, FindQuery, Hit, Thread } from '@sluice/contract'
import { connectRetrying } from '@sluice/process/redis'
import { createEnqueuer, type Lane, newJobId, queueKeys } from '@sluice/queue'
import {
  BOUNDS,
  completed,
  createCompleteJobs,
  createRecordFailure,
  failedAt,
  type JobInput,
} from '@sluice/queue/test-support'
import { requiredUrl, testQueueName, UNBOUNDED } from '@sluice/test-support'
import { it, type TestContext } from 'vitest'
import { createFailedJobs } from '../failed/failed-jobs.ts'
import { createFind, SearchesFullError } from './find.ts'

const NOBODY = new AbortController().signal

function thread(externalId: string, quotes: string[] = []): Thread {
  const messages = quotes.map((id) => ({ externalId: id, text: `says "externalId":"spoofed" ${id}` }))
  return { source: { service: 'slack', externalId, title: 'T' }, quotes: messages }
}

async function setUp(t: TestContext, recentBytes = BOUNDS.recentBytes) {
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  await once(redis, 'ready')
  const keys = queueKeys(testQueueName())
  const enqueuer = createEnqueuer(keys, redis, UNBOUNDED)
  const complete = createCompleteJobs(redis, keys, { ...BOUNDS, recentBytes }, 'here:1')
  const failedJobs = createFailedJobs(redis, keys)
  const find = createFind(redis, keys, async () => ({ hits: [], note: 'none' }))
  async function add(threads: Thread[], more: Partial<JobInput> = {}, lane: Lane = 'interactive'): Promise<string> {
    const id = newJobId()
    await enqueuer.enqueue(id, lane, { tenant: 'acme', requestId: `r-${id}`, retained: false, threads, ...more })
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
    const source = { outcome: 'created', wordCount: 1, createdAt: '2024-05-01T00:00:00.000Z' } as const
    const result = { receipts: [{ source, outcomes: '' }] }
    await complete([completed(id, { data: await lock(id), token: 'token', enqueuedAt: Date.now(), result })])
  }
  async function fail(id: string, reason: string): Promise<void> {
    const data = await lock(id)
    await redis.lrem(`${keys.jobs.interactive}active`, 1, id)
    await redis.del(`${keys.jobs.interactive}${id}:lock`)
    const at = Date.now()
    await redis.zadd(keys.failed.interactive, at, id)
    await redis.hset(keys.jobs.interactive + id, 'finishedOn', at, 'failedReason', reason)
    await createRecordFailure(redis, keys, 1_000_000, () => {})(failedAt(at, id, { data }))
  }
  const search = async (query: FindQuery) => hitsOf(await linesOf(find(query, NOBODY)))
  return { redis, keys, find, add, lock, finish, fail, search, failedJobs }
}

async function linesOf(lines: AsyncIterable<FindLine>): Promise<FindLine[]> {
  const all: FindLine[] = []
  for await (const line of lines) all.push(line)
  return all
}

const hitsOf = (lines: FindLine[]): Hit[] => lines.flatMap((line) => ('hit' in line ? [line.hit] : []))

it('finds a thread by its externalId, alone in its job or among others, in each state', async (t) => {
  const { add, lock, finish, fail, search } = await setUp(t)
  const alone = await add([thread('C1')])
  const among = await add([thread('C0'), thread('C1'), thread('C2')], {}, 'bulk')
  const active = await add([thread('C1')])
  await lock(active)
  const failed = await add([thread('C1')])
  await fail(failed, 'Document failed validation')
  const done = await add([thread('C1')])
  await finish(done)
  await add([thread('C10')])
  const hits = await search({ q: 'C1' })
  const shown = hits.map(({ id, state, name, place }) => ({ id, state, name, place }))
  const name = 'slack/C1'
  const byId = (one: { id: string }, other: { id: string }) => (one.id < other.id ? -1 : 1)
  const expected = [
    { id: alone, state: 'waiting', name, place: 0 },
    { id: among, state: 'waiting', name, place: 1 },
    { id: active, state: 'active', name, place: 0 },
    { id: failed, state: 'failed', name, place: 0 },
    { id: done, state: 'completed', name, place: undefined },
  ]
  // Ids of the same millisecond are in no order.
  assert.deepEqual(shown.sort(byId), expected.sort(byId))
  assert.deepEqual(
    (await search({ q: 'C1', state: 'failed', reason: 'FAILED valid' })).map(({ id }) => id),
    [failed],
  )
  assert.deepEqual(await search({ q: 'C1', reason: 'timed out' }), [])
  assert.deepEqual(await search({ q: 'C1', tenant: 'other' }), [])
  assert.deepEqual(await search({ q: 'C1', service: 'zendesk' }), [])
})

it('finds by the beginning of an externalId, a quote, a request, an import and a job', async (t) => {
  const { add, finish, search } = await setUp(t)
  const importId = newJobId()
  const one = await add(
    [thread('C0123-1', ['m "1"']), thread('D')],
    { import: { id: importId, places: [0, 1] } },
    'bulk',
  )
  const other = await add([thread('C0123-2', ['m2'])], { requestId: 'mine' })
  const idsOf = async (q: string) => (await search({ q })).map(({ id }) => id).sort()
  assert.deepEqual(await idsOf('C0123-*'), [one, other].sort())
  assert.deepEqual(await idsOf('C0123-'), [])
  assert.deepEqual(await idsOf(importId), [one])
  assert.deepEqual(await idsOf('mine'), [other])
  assert.deepEqual(await idsOf(other), [other])
  assert.deepEqual(await search({ q: 'spoofed' }), [])
  const [quote] = await search({ q: 'm "1"' })
  assert.deepEqual(
    { id: quote?.id, name: quote?.name, quote: quote?.quote },
    { id: one, name: 'slack/C0123-1', quote: 'm "1"' },
  )
  await finish(other)
  for (const q of ['mine', other, 'C0123-2', 'C0123-*']) {
    const found = (await search({ q, state: 'completed' }))[0]
    assert.equal(found?.id, other, q)
    assert.deepEqual(found?.outcomes, { created: 1, updated: 0, unchanged: 0 })
    assert.equal(found?.worker, 'here:1')
  }
})

it('waits while another search runs, ends with its caller, and tells how much it examined', async (t) => {
  const { add, find, redis, keys } = await setUp(t)
  await Promise.all(Array.from({ length: 1_500 }, (_, at) => add([thread(`T${at}`)])))
  const lease = `${keys.base}search`
  await redis.set(lease, 'another', 'PX', 60_000)
  let isDone = false
  const searching = linesOf(find({ q: 'T8' }, NOBODY)).finally(() => {
    isDone = true
  })
  // The reply to this command arrives after the one to the search's first call.
  await redis.ping()
  assert.equal(isDone, false)
  await redis.del(lease)
  const lines = await searching
  assert.deepEqual(
    hitsOf(lines).map(({ name }) => name),
    ['slack/T8'],
  )
  const examined = lines.flatMap((line) => ('searched' in line && line.searched.isComplete ? [line.searched] : []))
  assert.deepEqual(examined[0], { in: 'names', examined: 1_500, isComplete: true })
  assert.deepEqual(lines.at(-1), { end: { hits: 1, more: false } })
  const leaving = new AbortController()
  const left = find({ q: 'T7' }, leaving.signal)
  await left.next()
  assert.equal(await redis.exists(lease), 1)
  leaving.abort(new Error('gone'))
  await assert.rejects(linesOf(left), /gone/)
  assert.equal(await redis.exists(lease), 0)
})

it('refuses the fifth search of a process, until one of the others ends', async (t) => {
  const { add, find } = await setUp(t)
  await add([thread('C1')])
  const lines = Array.from({ length: 4 }, () => find({ q: 'C1', state: 'stored' }, NOBODY))
  await Promise.all(lines.map((search) => search.next()))
  const search = () => linesOf(find({ q: 'C1' }, NOBODY))
  await assert.rejects(search(), SearchesFullError)
  await lines[0]?.return(undefined)
  assert.equal(hitsOf(await search()).length, 1)
})

it('keeps the list of completed jobs within its bytes, the oldest go first', async (t) => {
  const { add, finish, search, redis, keys } = await setUp(t, 2_000)
  const ids: string[] = []
  for (let at = 0; at < 30; at++) ids.push(await add([thread(`R${at}`)]))
  for (const id of ids) await finish(id)
  assert.equal((await search({ q: 'R0' })).length, 0)
  assert.equal((await search({ q: 'R29' })).length, 1)
  const bytes = Number(await redis.get(`${keys.base}recent:bytes`))
  assert(bytes > 1_000 && bytes <= 2_000, `${bytes}`)
  assert((await redis.xlen(`${keys.base}recent`)) < 15)
})
