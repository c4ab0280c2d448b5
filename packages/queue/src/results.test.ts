import assert from 'node:assert/strict'
import { requiredUrl, testQueueName } from '@sluice/test-support'
import { it, type TestContext } from 'vitest'
import { connectPatient } from './connect-redis.ts'
import type { EndedJob, ResultBounds } from './end-jobs.ts'
import { queueKeys } from './queue-keys.ts'
import { createResults } from './results.ts'

const BOUNDS: ResultBounds = { toldMs: 3_600_000, untoldMs: 60_000, bytes: 1_000_000, failedBytes: 1_000_000 }
const receipts = [
  {
    source: { outcome: 'created' as const, wordCount: 1, createdAt: '2024-05-01T00:00:00.000Z' },
    outcomes: 'c',
  },
]

function setUp(t: TestContext) {
  const redis = connectPatient(requiredUrl('REDIS_URL'), () => {})
  t.onTestFinished(() => redis.disconnect())
  const keys = queueKeys(testQueueName())
  const { base, jobs } = keys
  const results = createResults(redis, keys)
  const addJob = (id: string, data: string) => redis.hset(`${jobs.waiting}${id}`, 'data', data)
  return { redis, base, results, addJob }
}

const ended = (id: string, more: Partial<EndedJob> = {}): EndedJob => ({
  id,
  lane: 'waiting',
  told: false,
  attempts: 1,
  ending: { receipts },
  ...more,
})

it('keeps the result of a job whose id was told with its request, for an hour', async (t) => {
  const { redis, base, results, addJob } = setUp(t)
  await addJob('a', '{"thread":1}')
  await results.end([ended('a', { told: true, attempts: 2 })], BOUNDS)
  const kept = await results.kept('a')
  assert.deepEqual({ ...kept, at: 0 }, { ending: { receipts }, data: '{"thread":1}', at: 0, attempts: 2 })
  const ttl = await redis.pttl(`${base}kept:a`)
  assert(ttl > 3_590_000 && ttl <= 3_600_000, `${ttl}`)
})

it('keeps only the ending of a job that nobody was told of, for twice the deadline', async (t) => {
  const { redis, base, results } = setUp(t)
  await results.end([ended('a')], BOUNDS)
  assert.equal(await results.kept('a'), undefined)
  assert.deepEqual(await results.find(['a', 'b']), new Map([['a', { receipts }]]))
  assert((await redis.pttl(`${base}result:a`)) <= 60_000)
})

it('keeps the result for whom the id was told while the job was under way', async (t) => {
  const { results, addJob } = setUp(t)
  await addJob('a', '{}')
  assert.equal(await results.tell('a'), undefined)
  await results.end([ended('a')], BOUNDS)
  assert.equal((await results.kept('a'))?.data, '{}')
})

it('gives the ending in place of telling where the job has ended just before', async (t) => {
  const { results } = setUp(t)
  await results.end([ended('a')], BOUNDS)
  assert.deepEqual(await results.tell('a'), { receipts })
})

it('replies on the stream of the replica that waits, and leaves out what is too large for it', async (t) => {
  const { redis, base, results } = setUp(t)
  const large = { receipts: receipts.map((one) => ({ ...one, outcomes: 'c'.repeat(20_000) })) }
  await results.end([ended('a', { replyTo: 'r1' }), ended('b', { replyTo: 'r1', ending: large })], BOUNDS)
  const entries = await redis.xrange(`${base}replies:r1`, '-', '+')
  assert.deepEqual(
    entries.map(([, fields]) => fields),
    [['a', JSON.stringify({ receipts }), 'b', '']],
  )
})

it('forgets the oldest results past the bytes bound, and counts what it holds', async (t) => {
  const { redis, base, results, addJob } = setUp(t)
  const bounds = { ...BOUNDS, bytes: 5_000 }
  for (let at = 0; at < 20; at++) {
    await addJob(`told-${at}`, 'x'.repeat(500))
    await results.end([ended(`told-${at}`, { told: true })], bounds)
  }
  assert.equal(await results.kept('told-0'), undefined)
  assert.notEqual(await results.kept('told-19'), undefined)
  const bytes = Number(await redis.get(`${base}result-bytes`))
  assert(bytes <= 5_000 && bytes > 3_000, `${bytes}`)
})

it('counts a result once that is ended twice', async (t) => {
  const { redis, base, results } = setUp(t)
  await results.end([ended('a')], BOUNDS)
  const once = await redis.get(`${base}result-bytes`)
  await results.end([ended('a'), ended('a')], BOUNDS)
  assert.equal(await redis.get(`${base}result-bytes`), once)
})

it('names the oldest failed jobs that there is no room for, and tells who waits of a failure', async (t) => {
  const { results, addJob } = setUp(t)
  const bounds = { ...BOUNDS, failedBytes: 5_000 }
  const excess: string[] = []
  for (let at = 0; at < 4; at++) {
    await addJob(`f${at}`, 'x'.repeat(1_000))
    excess.push(...(await results.end([ended(`f${at}`, { ending: { receipts: [null], failure: 'no' } })], bounds)))
  }
  assert.deepEqual(excess, ['f0', 'f1'])
  assert.deepEqual(await results.find(['f3']), new Map([['f3', { receipts: [null], failure: 'no' }]]))
})

it('keeps the result of a failed job that was run again, because its caller was told the id with the failure', async (t) => {
  const { results, addJob, redis, base } = setUp(t)
  await addJob('f', '{}')
  await results.end([ended('f', { ending: { receipts: [null], failure: 'no' } })], BOUNDS)
  await results.end([ended('f')], BOUNDS)
  assert.deepEqual((await results.kept('f'))?.ending, { receipts })
  assert.equal(await redis.get(`${base}failure-bytes`), '0')
})
