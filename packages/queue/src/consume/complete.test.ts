import assert from 'node:assert/strict'
import { connectRetrying } from '@sluice/process/redis'
import { requiredUrl, testQueueName } from '@sluice/test-support'
import { it, type TestContext, vi } from 'vitest'
import { createMoveFailed } from '../failed/failed-set.ts'
import type { CompletedJob } from '../job/job.ts'
import { queueKeys } from '../job/lanes.ts'
import {
  BOUNDS,
  completed as completedJob,
  createCompleteJobs,
  createFail,
} from '../queue.test-support.ts'
import { createResults, type ResultBounds } from '../replies/results.ts'

const receipts = [
  {
    source: { outcome: 'created' as const, wordCount: 1, createdAt: '2024-05-01T00:00:00.000Z' },
    outcomes: 'c',
  },
]

function setUp(t: TestContext) {
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  const keys = queueKeys(testQueueName())
  const { base, jobs } = keys
  const results = createResults(redis, keys)
  const complete = (completed: CompletedJob[], bounds: ResultBounds) =>
    createCompleteJobs(redis, keys, bounds)(completed)
  /** The bytes of all results of a kind, as Redis counts them. */
  async function bytesOf(kind: 'retained' | 'transient'): Promise<number> {
    const inNewest = `local packed = redis.call('GET', KEYS[1])
      return packed and select(3, cmsgpack.unpack(packed)) or 0`
    const newest = kind === 'transient' ? await redis.eval(inNewest, 1, `${base}newest-results`) : 0
    return Number(await redis.get(`${base}${kind}`)) + Number(newest)
  }
  const addJob = (id: string, data: string) => redis.hset(`${jobs.interactive}${id}`, 'data', data)
  /** Counts a job as load. */
  const count = (id: string) =>
    redis.eval(
      `redis.call('HSET', KEYS[1], ARGV[1], cmsgpack.pack(1, 1, 1, 't', false))`,
      1,
      `${base}load:jobs`,
      id,
    )
  /** Fails a job, and returns the ids of those that are evicted for it. */
  async function fail(id: string, failedBytes: number): Promise<string[]> {
    const evicted: string[] = []
    await redis.set(`${keys.jobs.interactive}${id}:lock`, 'token')
    await createFail(redis, keys, failedBytes, (one) => void evicted.push(one))(id)
    return evicted
  }
  return { redis, base, keys, results, complete, fail, addJob, count, bytesOf }
}

const completed: typeof completedJob = (id, more) =>
  completedJob(id, { result: { receipts }, ...more })

it('retains the result of a job whose caller got the id at once, for an hour', async (t) => {
  const { redis, base, results, complete, addJob } = setUp(t)
  await addJob('a', '{"thread":1}')
  await complete([completed('a', { data: { retained: true }, attempt: 2 })], BOUNDS)
  const kept = await results.findRetained('a')
  assert.deepEqual(
    { ...kept, at: 0 },
    { result: { receipts }, data: '{"thread":1}', at: 0, attempts: 2 },
  )
  const ttl = await redis.pttl(`${base}retained:a`)
  assert(ttl > 3_590_000 && ttl <= 3_600_000, `${ttl}`)
})

it('keeps only the result of a job whose id nobody has, for twice the deadline', async (t) => {
  const { redis, base, results, complete } = setUp(t)
  await complete([completed('a')], BOUNDS)
  assert.equal(await results.findRetained('a'), undefined)
  assert.deepEqual(await results.find(['a', 'b']), new Map([['a', { receipts }]]))
  const groups = await redis.keys(`${base.replace('{', '\\{')}results:*`)
  assert.equal(groups.length, 1)
  const ttl = await redis.pttl(groups[0] ?? '')
  assert(ttl > 60_000 && ttl <= 60_000 * (1 + 1 / 16), `${ttl}`)
})

it('retains the result of a job whose caller got the id while the job was under way', async (t) => {
  const { results, complete, addJob, count } = setUp(t)
  await addJob('a', '{}')
  await count('a')
  assert.equal(await results.retainResult('a'), undefined)
  await complete([completed('a')], BOUNDS)
  assert.equal((await results.findRetained('a'))?.data, '{}')
})

it('returns the result instead of a retain mark if the job has just completed', async (t) => {
  const { results, complete } = setUp(t)
  await complete([completed('a')], BOUNDS)
  assert.deepEqual(await results.retainResult('a'), { receipts })
})

it('retains a result that was transient, if its payload is sent again', async (t) => {
  const { redis, base, results, complete, bytesOf } = setUp(t)
  await complete([completed('a'), completed('b')], BOUNDS)
  const ofTwo = await bytesOf('transient')
  const before = Date.now()
  assert.deepEqual(await results.retainResult('a', '{"thread":1}', 't'), { receipts })
  const { at = 0, ...kept } = (await results.findRetained('a')) ?? {}
  assert.deepEqual(kept, { result: { receipts }, data: '{"thread":1}', attempts: 1 })
  assert(at >= before - 5 && at <= Date.now() + 5, `${at}`)
  assert((await redis.pttl(`${base}retained:a`)) > 3_590_000)
  assert.deepEqual(await results.retainResult('a', '{"thread":1}', 't'), { receipts })
  assert.deepEqual(await redis.zrange(`${base}retained:of:t:age`, '0', '-1'), ['a'])
  assert.deepEqual([...(await results.find(['a', 'b'])).keys()].sort(), ['a', 'b'])
  assert.equal(await bytesOf('transient'), ofTwo / 2)
  assert.equal(await bytesOf('retained'), ofTwo / 2 + '{"thread":1}'.length)
})

it('has a result expire that joins a group whose other results were forgotten', async (t) => {
  const { redis, base, results, complete } = setUp(t)
  await complete([completed('a')], BOUNDS)
  await results.retainResult('a', '{}', 't')
  await complete([completed('b')], BOUNDS)
  const [group = ''] = await redis.keys(`${base.replace('{', '\\{')}results:*`)
  assert((await redis.pttl(group)) > 60_000)
})

it('retains no payload that is sent again, but may have words of a suppressed speaker', async (t) => {
  const { results, complete } = setUp(t)
  const suppressed = receipts.map((one) => ({ ...one, outcomes: '=s' }))
  await complete([completed('a', { result: { receipts: suppressed } })], BOUNDS)
  assert.deepEqual(await results.retainResult('a', '{}', 't'), { receipts: suppressed })
  assert.equal(await results.findRetained('a'), undefined)
})

it('does not retain the result of a failure: the failed job has all of it', async (t) => {
  const { results, fail } = setUp(t)
  await fail('a', 1_000_000)
  assert.equal((await results.retainResult('a', '{}', 't'))?.failure, 'no')
  assert.equal(await results.findRetained('a'), undefined)
})

it('replies on the stream of the replica that waits, and leaves out a result that is too large for it', async (t) => {
  const { redis, base, complete } = setUp(t)
  const large = { receipts: receipts.map((one) => ({ ...one, outcomes: 'c'.repeat(20_000) })) }
  await complete(
    [
      completed('a', { data: { replyTo: 'r1' } }),
      completed('b', { data: { replyTo: 'r1' }, result: large }),
    ],
    BOUNDS,
  )
  const entries = await redis.xrange(`${base}replies:r1`, '-', '+')
  assert.deepEqual(
    entries.map(([, fields]) => fields),
    [['a', JSON.stringify({ receipts }), 'b', '']],
  )
})

it('evicts the oldest results beyond the bound in bytes, and counts the bytes that are left', async (t) => {
  const { results, complete, addJob, bytesOf } = setUp(t)
  const bounds = { ...BOUNDS, resultBytes: 5_000 }
  for (let at = 0; at < 20; at++) {
    await addJob(`retained-${at}`, 'x'.repeat(500))
    await complete([completed(`retained-${at}`, { data: { retained: true } })], bounds)
  }
  assert.equal(await results.findRetained('retained-0'), undefined)
  assert.notEqual(await results.findRetained('retained-19'), undefined)
  const bytes = await bytesOf('retained')
  assert(bytes <= 5_000 && bytes > 3_000, `${bytes}`)
})

it('evicts the results of the tenant that has the most, and none of the others', async (t) => {
  const { results, complete, addJob } = setUp(t)
  const bounds = { ...BOUNDS, resultBytes: 20_000 }
  const retain = async (id: string, tenant: string, bytes: number) => {
    await addJob(id, 'x'.repeat(bytes))
    await complete([completed(id, { data: { retained: true, tenant } })], bounds)
  }
  const ids = ['a', 'b', 'c', 'd', 'e']
  for (const id of ids) await retain(id, 'quiet', 100)
  for (let at = 0; at < 30; at++) await retain(`large-${at}`, 'loud', 5_000)
  for (const id of ids) assert.notEqual(await results.findRetained(id), undefined, id)
  assert.equal(await results.findRetained('large-0'), undefined)
  assert.notEqual(await results.findRetained('large-29'), undefined)
})

it('keeps results that callers wait for although retained ones fill the bound, and the other way round', async (t) => {
  const { results, complete, addJob, bytesOf } = setUp(t)
  const bounds = { ...BOUNDS, resultBytes: 20_000 }
  const kinds = {
    retained: (id: string) => results.findRetained(id),
    transient: async (id: string) => (await results.find([id])).get(id),
  }
  const bytes = () => Promise.all([bytesOf('retained'), bytesOf('transient')])
  async function fill(kind: 'retained' | 'transient'): Promise<void> {
    for (let at = 0; at < 40; at++) {
      await addJob(`${kind}-${at}`, 'x'.repeat(500))
      await complete(
        [completed(`${kind}-${at}`, { data: { retained: kind === 'retained' } })],
        bounds,
      )
    }
  }
  await fill('retained')
  assert(Number((await bytes())[0]) > 18_000, 'one kind may use the whole bound')
  for (const [full, other] of [
    ['retained', 'transient'],
    ['transient', 'retained'],
  ] as const) {
    await fill(full)
    await fill(other)
    for (const kind of [full, other])
      assert.notEqual(await kinds[kind](`${kind}-39`), undefined, `the last ${kind} result`)
    const [retained = 0, transient = 0] = await bytes()
    assert(
      retained + transient <= 20_000 && Math.min(retained, transient) > 5_000,
      `${retained}, ${transient}`,
    )
  }
})

it('evicts no result that it has just stored, however large', async (t) => {
  const { results, complete, addJob } = setUp(t)
  const bounds = { ...BOUNDS, resultBytes: 5_000 }
  await addJob('large', 'x'.repeat(10_000))
  await complete(
    [completed('large', { data: { retained: true } }), completed('waited for')],
    bounds,
  )
  assert.notEqual(await results.findRetained('large'), undefined)
  assert.equal((await results.find(['waited for'])).size, 1)
})

it('evicts results in steps that do not block Redis, until they are within the bound', async (t) => {
  const { redis, complete, bytesOf } = setUp(t)
  const many = Array.from({ length: 2_000 }, (_, at) =>
    completed(`${at}`, { data: { retained: true } }),
  )
  await complete(many, BOUNDS)
  const steps = vi.spyOn(redis, 'sendCommand')
  await complete([completed('last')], { ...BOUNDS, resultBytes: 5_000 })
  const left = await bytesOf('retained')
  assert(left <= 5_000, `${left}`)
  assert(steps.mock.calls.length > 2_000 / 500, `${steps.mock.calls.length} steps`)
})

it('leaves a job to another worker if its lock is lost and it exists, not if the command is sent again', async (t) => {
  const { redis, keys, complete, addJob } = setUp(t)
  await addJob('a', '{}')
  await redis.set(`${keys.jobs.interactive}a:lock`, 'token')
  const [own, left] = ['a', 'b'].map((id) => completed(id, { token: 'token' }))
  assert(own && left)
  assert.deepEqual(await complete([own], BOUNDS), [true])
  assert.deepEqual(await complete([own], BOUNDS), [true])
  await addJob('b', '{}')
  assert.deepEqual(await complete([left], BOUNDS), [false])
})

it('counts the result of a job that completes twice once', async (t) => {
  const { complete, bytesOf } = setUp(t)
  await complete([completed('a')], BOUNDS)
  const once = await bytesOf('transient')
  await complete([completed('a'), completed('a')], BOUNDS)
  assert.equal(await bytesOf('transient'), once)
})

it('keeps the result of a job, retained or not, if a worker that lost its lock completes the job later', async (t) => {
  const { results, complete, addJob } = setUp(t)
  const late = { result: { receipts: [null] } }
  await addJob('retained', '{}')
  await complete(
    [completed('retained', { data: { retained: true }, attempt: 2 }), completed('transient')],
    BOUNDS,
  )
  await complete(
    [completed('retained', { data: { retained: true }, ...late }), completed('transient', late)],
    BOUNDS,
  )
  await complete([completed('retained', late)], BOUNDS)
  const kept = await results.findRetained('retained')
  assert.deepEqual([kept?.result, kept?.data, kept?.attempts], [{ receipts }, '{}', 2])
  const found = await results.find(['retained', 'transient'])
  assert.deepEqual([...found.values()], [{ receipts }, { receipts }])
})

it('keeps the result of a job that failed for good if a worker that lost its lock completes the job later', async (t) => {
  const { results, complete, fail, addJob } = setUp(t)
  await addJob('a', '{}')
  await fail('a', 1_000_000)
  await complete([completed('a')], BOUNDS)
  assert.equal((await results.find(['a'])).get('a')?.failure, 'no')
  assert.equal(await results.findRetained('a'), undefined)
})

it('discards the oldest failed jobs beyond their bound, and replies a failure', async (t) => {
  const { redis, results, fail, addJob, keys } = setUp(t)
  const excess: string[] = []
  for (let at = 0; at < 4; at++) {
    await addJob(`f${at}`, JSON.stringify('x'.repeat(10_000)))
    excess.push(...(await fail(`f${at}`, 25_000)))
  }
  assert.deepEqual(excess, ['f0', 'f1'])
  assert.deepEqual(await redis.zrange(keys.failed.interactive, '0', '-1'), ['f2', 'f3'])
  assert.equal(await redis.exists(`${keys.jobs.interactive}f0`), 0)
  assert.deepEqual(
    await results.find(['f3']),
    new Map([['f3', { receipts: [null], failure: 'no' }]]),
  )
})

it('retains the result of a failed job that was retried, because its caller got the id with the failure', async (t) => {
  const { redis, base, keys, results, complete, fail, addJob, count } = setUp(t)
  await addJob('f', '{}')
  await count('f')
  await fail('f', 5_000)
  await createMoveFailed(redis, keys)('retry', ['f'], 'ada')
  await complete([completed('f')], BOUNDS)
  assert.deepEqual((await results.findRetained('f'))?.result, { receipts })
  assert.equal(await redis.exists(`${base}failures`), 0)
})
