import assert from 'node:assert/strict'
import type { Thread } from '@sluice/contract'
import { requiredUrl, testQueueName } from '@sluice/test-support'
import { type Job, Queue, Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import { it, type TestContext } from 'vitest'
import { connectPatient } from './connect-redis.ts'
import { createEnqueueJobs } from './enqueue-jobs.ts'
import { type IngestJob, JOB_OPTIONS, jobName } from './ingest-job.ts'
import { queueKeys } from './queue-keys.ts'
import { createResults } from './results.ts'
import { createTakeJobs } from './take-jobs.ts'

// The scripts of this package write what BullMQ reads. So whatever they do is done here by BullMQ as well, and must come to the same.

const THREAD: Thread = { source: { service: 'custom', externalId: 'a', title: 'A' }, quotes: [] }
const JOB = { tenant: 't', requestId: 'r', told: false, threads: [THREAD] }
const ID = 'a-job'
const TOKEN = 'a-token'
const LOCK_MS = 5_000
const BOUNDS = { toldMs: 60_000, untoldMs: 60_000, bytes: 1_000_000, failedBytes: 1_000_000 }

function setUp(t: TestContext) {
  const redis = connectPatient(requiredUrl('REDIS_URL'), () => {})
  t.onTestFinished(() => redis.disconnect())
  const [ours, theirs] = [queueKeys(testQueueName()), queueKeys(testQueueName())]
  const { prefix, queues } = theirs
  const options = { connection: redis, prefix, skipVersionCheck: true }
  const queue = new Queue<IngestJob>(queues.waiting, options)
  const worker = new Worker<IngestJob>(queues.waiting, null, {
    ...options,
    autorun: false,
    lockDuration: LOCK_MS,
    removeOnComplete: { count: 0 },
  })
  // Its connection that blocks would keep the process alive.
  t.onTestFinished(() => worker.close(true))
  const stamps: number[] = []
  const steps = {
    async add() {
      stamps.push(await createEnqueueJobs(redis, ours)({ id: ID, lane: 'waiting', job: JOB }))
      await queue.add(
        jobName(JOB.threads),
        { stamp: stamps[0] ?? 0, ...JOB },
        { jobId: ID, ...JSON.parse(JOB_OPTIONS) },
      )
    },
    async take() {
      const { jobs } = await createTakeJobs(redis, ours, LOCK_MS)('waiting', TOKEN, 10)
      return { ours: jobs[0], theirs: await worker.getNextJob(TOKEN, { block: false }) }
    },
    async end(theirs: Job<IngestJob> | undefined) {
      const ending = { receipts: [null] }
      await createResults(redis, ours).end(
        [{ id: ID, lane: 'waiting', told: false, token: TOKEN, attempts: 1, ending }],
        BOUNDS,
      )
      await theirs?.moveToCompleted(undefined, TOKEN, false)
    },
  }
  const left = async () => {
    const [one, other] = [await leftBehind(redis, ours.jobs.waiting), await leftBehind(redis, theirs.jobs.waiting)]
    return { ours: one, theirs: other }
  }
  return { steps, left, redis, ours, worker, queue }
}

/** All of a lane, by key, without what only tells of the past or of the queue as a whole. */
async function leftBehind(redis: Redis, before: string): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {}
  for (const key of await redis.keys(`${before.replace('{', '\\{')}*`)) {
    const name = key.slice(before.length)
    if (['events', 'id', 'meta', 'stalled-check'].includes(name)) continue
    found[name] = await valueAt(redis, key)
  }
  return found
}

async function valueAt(redis: Redis, key: string): Promise<unknown> {
  const type = await redis.type(key)
  if (type === 'list') return redis.lrange(key, 0, -1)
  if (type === 'zset') return redis.zrange(key, '0', '-1', 'WITHSCORES')
  if (type === 'set') return redis.smembers(key)
  if (type === 'string') return [await redis.get(key), (await redis.pttl(key)) > LOCK_MS - 1_000]
  const { timestamp, processedOn, opts = '{}', ...fields } = await redis.hgetall(key)
  // Theirs loses the last digits, and repeats the id.
  const { attempts, jobId: _, ...others } = JSON.parse(opts)
  return { ...fields, opts: others, unbounded: attempts > 1e15, times: [timestamp, processedOn].map(isNow) }
}

const isNow = (time: string | undefined) => time !== undefined && Math.abs(Number(time) - Date.now()) < 60_000

it('adds a job as BullMQ does', async (t) => {
  const { steps, left } = setUp(t)
  await steps.add()
  const { ours, theirs } = await left()
  assert.deepEqual(Object.keys(ours).sort(), [ID, 'marker', 'wait'])
  assert.deepEqual(ours, theirs)
})

it('takes a job as BullMQ does', async (t) => {
  const { steps, left } = setUp(t)
  await steps.add()
  const taken = await steps.take()
  const { ours, theirs } = await left()
  assert.deepEqual(Object.keys(ours).sort(), [ID, `${ID}:lock`, 'active', 'marker'])
  assert.deepEqual(ours, theirs)
  assert.deepEqual(taken.ours?.data, taken.theirs?.data)
  assert.equal(taken.ours?.attemptsStarted, taken.theirs?.attemptsStarted)
})

it('takes a job off the queue that is done as BullMQ does', async (t) => {
  const { steps, left } = setUp(t)
  await steps.add()
  const taken = await steps.take()
  await steps.end(taken.theirs)
  const { ours, theirs } = await left()
  assert.deepEqual(Object.keys(ours), ['marker'])
  assert.deepEqual(ours, theirs)
})

it('leaves to BullMQ what only BullMQ knows how to take, and takes nothing of a lane that is paused', async (t) => {
  const { steps, redis, ours } = setUp(t)
  const take = createTakeJobs(redis, ours, LOCK_MS)
  await steps.add()
  const lane = ours.jobs.waiting
  await redis.zadd(`${lane}delayed`, 0x1000, 'delayed')
  assert.deepEqual((await take('waiting', TOKEN, 10)).special, true)
  const later = Date.now() + 60_000
  await redis.zadd(`${lane}delayed`, later * 0x1000, 'delayed')
  await redis.zadd(`${lane}prioritized`, 1, 'first')
  assert.deepEqual((await take('waiting', TOKEN, 10)).special, true)
  await redis.del(`${lane}prioritized`)
  await redis.hset(`${lane}meta`, 'paused', 1)
  assert.deepEqual(await take('waiting', TOKEN, 10), { jobs: [], special: false, nextAt: later })
  await redis.hdel(`${lane}meta`, 'paused')
  const { jobs, nextAt } = await take('waiting', TOKEN, 10)
  assert.deepEqual([jobs.map(({ id }) => id), nextAt], [[ID], later])
})

it('leaves a job alone whose lock another one has', async (t) => {
  const { steps, redis, ours } = setUp(t)
  await steps.add()
  await steps.take()
  await redis.set(`${ours.jobs.waiting}${ID}:lock`, 'of another one')
  await steps.end(undefined)
  assert.deepEqual(await redis.lrange(`${ours.jobs.waiting}active`, 0, -1), [ID])
  assert.equal(await redis.exists(`${ours.jobs.waiting}${ID}`), 1)
})

it('takes no more at a time than memory has room for, and leaves word that there is more', async (t) => {
  const { redis, ours } = setUp(t)
  const enqueue = createEnqueueJobs(redis, ours)
  const text = 'x'.repeat(6 * 1024 * 1024)
  for (const id of ['a', 'b', 'c', 'd'])
    await enqueue({ id, lane: 'waiting', job: { ...JOB, threads: [{ ...THREAD, quotes: [{ text }] }] } })
  const take = createTakeJobs(redis, ours, LOCK_MS)
  await redis.del(`${ours.jobs.waiting}marker`)
  assert.deepEqual(
    (await take('waiting', TOKEN, 10)).jobs.map(({ id }) => id),
    ['a', 'b', 'c'],
  )
  assert.equal(await redis.exists(`${ours.jobs.waiting}marker`), 1)
  assert.deepEqual(
    (await take('waiting', TOKEN, 10)).jobs.map(({ id }) => id),
    ['d'],
  )
})
