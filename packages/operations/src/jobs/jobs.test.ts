import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { JobListQuery, Thread } from '@sluice/contract'
import { connectRetrying } from '@sluice/process/redis'
import { createEnqueuer, type Lane, newJobId, queueKeys } from '@sluice/queue'
import { BOUNDS, completed, createCompleteJobs, createFail } from '@sluice/queue/test-support'
import { requiredUrl, testQueueName, UNBOUNDED } from '@sluice/test-support'
import { it, type TestContext } from 'vitest'
import { createFailedJobs } from '../failed/failed-jobs.ts'
import { createListJobs, createReadJob, JOBS_SHOWN } from './jobs.ts'

const thread = (externalId: string): Thread => ({
  source: { service: 'slack', externalId, title: 'T' },
  quotes: [],
})
const RECEIPT = {
  source: { outcome: 'created', wordCount: 1, createdAt: '2024-05-01T00:00:00.000Z' },
  outcomes: '',
} as const

async function setUp(t: TestContext) {
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  await once(redis, 'ready')
  const keys = queueKeys(testQueueName())
  const { jobs } = keys
  const enqueuer = createEnqueuer(keys, redis, UNBOUNDED)
  const complete = createCompleteJobs(redis, keys, BOUNDS, 'here:1')
  async function add(
    threads: Thread[],
    lane: Lane = 'interactive',
    tenant = 'acme',
    retained = false,
  ) {
    const id = newJobId(threads[0]?.source.externalId)
    await enqueuer.enqueue(id, lane, { tenant, requestId: `r-${id}`, retained, threads })
    return id
  }
  async function lock(id: string, lane: Lane = 'interactive') {
    await redis.lrem(`${jobs[lane]}wait`, 1, id)
    await redis.lpush(`${jobs[lane]}active`, id)
    await redis.set(`${jobs[lane]}${id}:lock`, 'token')
    return JSON.parse((await redis.hget(jobs[lane] + id, 'data')) ?? '')
  }
  async function leave(id: string) {
    await redis.lrem(`${jobs.interactive}active`, 1, id)
    await redis.del(`${jobs.interactive}${id}:lock`)
  }
  const list = createListJobs(redis, keys, createFailedJobs(redis, keys))
  return {
    ...{ redis, keys, add, lock, list },
    read: createReadJob(redis, keys).readAny,
    async finish(id: string) {
      const result = { receipts: [RECEIPT] }
      await complete([
        completed(id, { data: await lock(id), token: 'token', enqueuedAt: Date.now(), result }),
      ])
    },
    async delay(id: string) {
      await lock(id)
      await leave(id)
      await redis.zadd(`${jobs.interactive}delayed`, Date.now() * 0x1000, id)
    },
    async fail(id: string) {
      await createFail(redis, keys)(id, { data: await lock(id) }, 'Document failed validation')
    },
    idsOf: async (query: JobListQuery) => (await list(query)).jobs.map(({ id }) => id),
  }
}

it('lists the jobs of each state, those of both lanes or of one', async (t) => {
  const { add, lock, delay, fail, finish, list, idsOf } = await setUp(t)
  const waiting = await add([thread('C1')])
  const bulk = await add([thread('C2'), thread('C3')], 'bulk')
  const [delayed, active, failed, done] = await Promise.all(
    ['C4', 'C5', 'C6', 'C7'].map((id) => add([thread(id)])),
  )
  await delay(delayed ?? '')
  await lock(active ?? '')
  await fail(failed ?? '')
  await finish(done ?? '')
  assert.deepEqual(await idsOf({ state: 'waiting' }), [waiting, bulk])
  assert.deepEqual(await idsOf({ state: 'waiting', lane: 'bulk' }), [bulk])
  assert.deepEqual(await idsOf({ state: 'delayed' }), [delayed])
  assert.deepEqual(await idsOf({ state: 'active' }), [active])
  assert.deepEqual(await idsOf({ state: 'failed' }), [failed])
  assert.deepEqual(await idsOf({ state: 'failed', lane: 'bulk' }), [])
  assert.deepEqual(await idsOf({}), [done], 'the completed ones, unless the query names a state')
  const [hit] = (await list({ state: 'waiting', lane: 'bulk' })).jobs
  assert.deepEqual(
    [hit?.name, hit?.threads, hit?.tenant, hit?.state],
    ['slack/C2 … slack/C3 (2)', 2, 'acme', 'waiting'],
  )
})

it('filters by tenant, service, and a part of the name or the id, in capitals or not', async (t) => {
  const { add, fail, finish, idsOf } = await setUp(t)
  for (const state of ['waiting', 'failed', 'completed'] as const) {
    const wanted = await add([thread(`Älpha-${state}`)])
    const other = await add([thread('beta')], 'interactive', 'globex')
    for (const id of [wanted, other]) {
      if (state === 'failed') await fail(id)
      if (state === 'completed') await finish(id)
    }
    assert.deepEqual(await idsOf({ state, text: 'älPHA' }), [wanted], state)
    assert.deepEqual(await idsOf({ state, text: wanted }), [wanted], state)
    assert.deepEqual(await idsOf({ state, tenant: 'globex' }), [other], state)
    assert.deepEqual(await idsOf({ state, tenant: 'acme', service: 'slack' }), [wanted], state)
    assert.deepEqual(await idsOf({ state, service: 'reddit' }), [], state)
  }
})

it('lists every waiting job once, page by page, over both lanes, and every completed one', async (t) => {
  const { add, finish, list } = await setUp(t)
  const ids: string[] = []
  async function listAll(state: 'waiting' | 'completed') {
    const found: string[] = []
    let after: string | undefined
    do {
      const page = await list({ state, ...(after !== undefined && { after }) })
      assert.ok(page.jobs.length <= JOBS_SHOWN)
      found.push(...page.jobs.map(({ id }) => id))
      after = page.next
    } while (after !== undefined)
    assert.deepEqual(found.toSorted(), ids.toSorted())
  }
  for (let at = 0; at < 2 * JOBS_SHOWN + 3; at++)
    ids.push(await add([thread(`C${at}`)], at % 3 ? 'interactive' : 'bulk'))
  await listAll('waiting')
  ids.length = 0
  for (let at = 0; at < 2 * JOBS_SHOWN + 3; at++) {
    const id = await add([thread(`C${at}`)])
    await finish(id)
    ids.push(id)
  }
  await listAll('completed')
})

it('reads a job in each state, with the outcomes of its threads once it has ended', async (t) => {
  const { add, lock, delay, fail, finish, read } = await setUp(t)
  const stateOf = async (id: string) => {
    const { hit, threads } = (await read(id)) ?? {}
    return [
      hit?.state,
      hit?.name,
      ...(threads ?? []).map(({ externalId, outcome }) => `${externalId} ${outcome}`),
    ]
  }
  const id = await add([thread('C1')])
  assert.deepEqual(await stateOf(id), ['waiting', 'slack/C1', 'C1 undefined'])
  await delay(id)
  assert.deepEqual(await stateOf(id), ['delayed', 'slack/C1', 'C1 undefined'])
  const active = await add([thread('C2')])
  await lock(active)
  assert.deepEqual(await stateOf(active), ['active', 'slack/C2', 'C2 undefined'])
  const failed = await add([thread('C3')])
  await fail(failed)
  assert.deepEqual(await stateOf(failed), ['failed', 'slack/C3', 'C3 failed'])
  const retained = await add([thread('C4')], 'interactive', 'acme', true)
  await finish(retained)
  assert.deepEqual(await stateOf(retained), ['completed', 'slack/C4', 'C4 created'])
  const { hit, payload } = (await read(retained)) ?? {}
  assert.deepEqual([hit?.outcomes?.created, hit?.worker], [1, 'here:1'])
  assert.equal(Object(payload).tenant, 'acme')
  const other = await add([thread('C5')])
  await finish(other)
  assert.deepEqual(
    await stateOf(other),
    ['completed', 'slack/C5'],
    'of a job whose result is not retained, only its line is left',
  )
  assert.equal(await read(newJobId()), undefined)
  assert.equal(await read('{queue}'), undefined)
})
