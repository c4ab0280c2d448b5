// Compares what our scripts leave in Redis with what BullMQ leaves. Another version of BullMQ:
// `BULLMQ=latest pnpm test as-bullmq-does`.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Thread } from '@sluice/contract'
import { connectRetrying, openScript } from '@sluice/process/redis'
import { requiredUrl, testQueueName } from '@sluice/test-support'
import type { Job } from 'bullmq'
import type { Redis } from 'ioredis'
import { it, type TestContext } from 'vitest'
import { createFetchJobs, createLocks } from '../consume/fetch-jobs.ts'
import { type IngestJob, JOB_OPTIONS, type LockedJob, nameJob } from '../job/job.ts'
import { type QueueKeys, queueKeys } from '../job/lanes.ts'
import {
  completed,
  createCompleteJobs,
  createFail,
  createJobAdder,
  loadBullMQ,
} from '../queue.test-support.ts'

const bullmq = await loadBullMQ()

const THREAD: Thread = { source: { service: 'custom', externalId: 'a', title: 'A' }, quotes: [] }
const JOB = { tenant: 't', requestId: 'r', retained: false, threads: [THREAD] }
const ID = 'a-job'
const TOKEN = 'a-token'
/** So long that a slow machine is not at its half within a test. */
const LOCK_MS = 60_000
const ROOM = { jobs: 10, bytes: 64 * 1024 * 1024, isEmpty: true }
/** What a fetch finds in an empty queue. */
const NONE = { jobs: [], misfit: 0, nextAt: undefined, lookAfterMs: undefined }

/** BullMQ's view of a queue. */
function openBullMQ(t: TestContext, redis: Redis, { prefix, queues }: QueueKeys) {
  const options = { connection: redis, prefix, skipVersionCheck: true }
  const queue = new bullmq.Queue<IngestJob>(queues.interactive, options)
  const worker = new bullmq.Worker<IngestJob>(queues.interactive, null, {
    ...options,
    autorun: false,
    lockDuration: LOCK_MS,
    stalledInterval: 50,
    maxStalledCount: Number.MAX_SAFE_INTEGER,
    removeOnComplete: { count: 0 },
    settings: { backoffStrategy: () => 60_000 },
  })
  // The worker's blocking connection would keep the process alive.
  t.onTestFinished(() => worker.close(true))
  return { queue, worker }
}

function setUp(t: TestContext) {
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  const [ours, theirs] = [queueKeys(testQueueName()), queueKeys(testQueueName())]
  const { queue, worker } = openBullMQ(t, redis, theirs)
  /** BullMQ on the queue that our scripts work on. */
  const onOurs = openBullMQ(t, redis, ours)
  const fetchJobs = createFetchJobs(redis, ours, 'a-worker', LOCK_MS)
  const stamps: number[] = []
  const steps = {
    async add(id = ID) {
      const stamp = await createJobAdder(redis, ours)({ id, lane: 'interactive', job: JOB })
      stamps.push(stamp)
      await queue.add(
        nameJob(JOB.threads),
        { stamp, ...JOB },
        { jobId: id, ...JSON.parse(JOB_OPTIONS) },
      )
    },
    async fetch() {
      const { jobs } = await fetchJobs('interactive', TOKEN, { ...ROOM, jobs: 1 })
      return { ours: jobs[0], theirs: await worker.getNextJob(TOKEN, { block: false }) }
    },
    async complete(theirs: Job<IngestJob> | undefined, id = ID) {
      const result = { receipts: [null] }
      await createCompleteJobs(redis, ours)([completed(id, { token: TOKEN, result })])
      await theirs?.moveToCompleted(undefined, TOKEN, false)
    },
  }
  const left = async () => {
    const [one, other] = [
      await leftIn(redis, ours.jobs.interactive),
      await leftIn(redis, theirs.jobs.interactive),
    ]
    return { ours: one, theirs: other }
  }
  return { steps, left, redis, ours, theirs, worker, queue, onOurs }
}

/** Asserts that both fetched the same job, or none. */
function assertSameJob(ours: LockedJob | undefined, theirs: Job<IngestJob> | undefined): void {
  assert.equal(ours === undefined, theirs === undefined)
  if (ours === undefined || theirs === undefined) return
  const { id, data, attemptsStarted, attemptsMade, stalledCounter } = theirs
  assert.deepEqual([ours.id, ours.data, ours.redelivered], [id, data, attemptsStarted > 1])
  assert.deepEqual(
    [ours.attempt, ours.quarantined],
    [attemptsMade + stalledCounter + 1, stalledCounter > 0],
  )
}

/** Keys without a meaning for a job: events, settings, and BullMQ's counters. */
const LEFT_OUT = ['events', 'id', 'meta', 'pc', 'stalled-check']

/** Returns all keys of a lane. */
async function leftIn(redis: Redis, before: string): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {}
  for (const key of await redis.keys(`${before.replace('{', '\\{')}*`)) {
    const name = key.slice(before.length)
    if (LEFT_OUT.includes(name)) continue
    found[name] = await valueAt(redis, key)
  }
  return found
}

async function valueAt(redis: Redis, key: string): Promise<unknown> {
  const type = await redis.type(key)
  if (type === 'list') return redis.lrange(key, 0, -1)
  // A score is 0, or a time, which differs between the two by moments.
  if (type === 'zset')
    return (await redis.zrange(key, '0', '-1', 'WITHSCORES')).map((text) =>
      Number(text) > 1e9 ? 'time' : text,
    )
  if (type === 'set') return redis.smembers(key)
  if (type === 'string') return [await redis.get(key), (await redis.pttl(key)) > LOCK_MS / 2]
  const { timestamp, processedOn, opts = '{}', ...fields } = await redis.hgetall(key)
  // Theirs loses the last digits, and repeats the id.
  const { attempts, jobId: _, ...others } = JSON.parse(opts)
  return {
    ...fields,
    opts: others,
    unbounded: attempts > 1e15,
    times: [timestamp, processedOn].map(isNow),
  }
}

const isNow = (time: string | undefined) =>
  time !== undefined && Math.abs(Number(time) - Date.now()) < 60_000

it('adds a job as BullMQ does', async (t) => {
  const { steps, left } = setUp(t)
  await steps.add()
  const { ours, theirs } = await left()
  assert.deepEqual(Object.keys(ours).sort(), [ID, 'marker', 'wait'])
  assert.deepEqual(ours, theirs)
})

it('fetches a job as BullMQ does', async (t) => {
  const { steps, left } = setUp(t)
  await steps.add()
  const fetched = await steps.fetch()
  const { ours, theirs } = await left()
  assert.deepEqual(Object.keys(ours).sort(), [ID, `${ID}:lock`, 'active', 'marker'])
  assert.deepEqual(ours, theirs)
  assert.deepEqual(fetched.ours?.data, fetched.theirs?.data)
  assert.deepEqual([fetched.ours?.redelivered, fetched.theirs?.attemptsStarted], [false, 1])
})

it('removes a completed job from the queue as BullMQ does', async (t) => {
  const { steps, left } = setUp(t)
  await steps.add()
  const fetched = await steps.fetch()
  await steps.complete(fetched.theirs)
  const { ours, theirs } = await left()
  assert.deepEqual(Object.keys(ours), ['marker'])
  assert.deepEqual(ours, theirs)
})

it('fails a job for good as BullMQ does', async (t) => {
  const { steps, left, redis, ours: keys, queue, onOurs } = setUp(t)
  await steps.add()
  const { theirs } = await steps.fetch()
  await createFail(redis, keys)(ID, { token: TOKEN })
  await theirs?.moveToFailed(new bullmq.UnrecoverableError('no'), TOKEN)
  await redis.hdel(
    keys.jobs.interactive + ID,
    'failure',
    'tries',
    'failedThreads',
    'load',
    'progress',
  )
  const found = await left()
  for (const lane of [found.ours, found.theirs]) {
    const { finishedOn, stacktrace, ...fields } = Object(lane[ID])
    lane[ID] = { ...fields, isFinished: isNow(finishedOn), stacks: JSON.parse(stacktrace).length }
  }
  assert.deepEqual(Object.keys(found.ours).sort(), [ID, 'failed', 'marker'])
  assert.deepEqual(found.ours, found.theirs)
  const failed = async (view: typeof queue) =>
    (await redis.xrange(view.toKey('events'), '-', '+')).map(([, all]) => all)
  const event = ['event', 'failed', 'jobId', ID, 'failedReason', 'no', 'prev', 'active']
  for (const view of [onOurs.queue, queue])
    assert.deepEqual(
      (await failed(view)).filter(([, name]) => name === 'failed'),
      [event],
    )
})

it('fetches delayed jobs once they are due, and jobs with priorities, in the order of BullMQ', async (t) => {
  const { steps, left, redis, ours, theirs, queue, onOurs } = setUp(t)
  const options = { ...JSON.parse(JOB_OPTIONS), priority: 0 }
  for (const one of [queue, onOurs.queue])
    for (const [id, more] of Object.entries({
      'less important': { priority: 2 },
      due: { delay: 1 },
      'most important': { priority: 1 },
      'due and important': { priority: 1, delay: 1 },
      'due later': { delay: 60_000 },
    }))
      await one.add(id, { stamp: 0, ...JOB }, { ...options, ...more, jobId: id })
  await steps.add('waits')
  await new Promise((resolve) => setTimeout(resolve, 10))
  const fetched: unknown[] = []
  for (let job = 0; job < 6; job++) {
    const { ours: one, theirs: other } = await steps.fetch()
    assertSameJob(one, other)
    fetched.push(one?.id)
    const { ours: leftByUs, theirs: leftByBullMQ } = await left()
    assert.deepEqual(leftByUs, leftByBullMQ)
  }
  assert.deepEqual(fetched, [
    'waits',
    'due',
    'most important',
    'due and important',
    'less important',
    undefined,
  ])
  const { nextAt = 0 } = await createFetchJobs(
    redis,
    ours,
    'a-worker',
    LOCK_MS,
  )('interactive', TOKEN, ROOM)
  assert.equal(Math.abs(nextAt - Date.now() - 60_000) < 30_000, true)
  for (const keys of [ours, theirs])
    assert.equal(await redis.zcard(`${keys.jobs.interactive}delayed`), 1)
})

it('wakes another worker if jobs with priorities are left', async (t) => {
  const { redis, ours, onOurs } = setUp(t)
  for (const jobId of ['a', 'b'])
    await onOurs.queue.add(jobId, { stamp: 0, ...JOB }, { priority: 1, jobId })
  await redis.del(ours.markers.interactive)
  const fetch = createFetchJobs(redis, ours, 'a-worker', LOCK_MS)
  assert.equal((await fetch('interactive', TOKEN, { ...ROOM, jobs: 1 })).jobs.length, 1)
  assert.equal(await redis.exists(ours.markers.interactive), 1)
})

it('leaves a job alone whose lock belongs to another worker', async (t) => {
  const { steps, redis, ours } = setUp(t)
  await steps.add()
  await steps.fetch()
  await redis.set(`${ours.jobs.interactive}${ID}:lock`, 'of another worker')
  await steps.complete(undefined)
  assert.deepEqual(await redis.lrange(`${ours.jobs.interactive}active`, 0, -1), [ID])
  assert.equal(await redis.exists(`${ours.jobs.interactive}${ID}`), 1)
})

it('fetches no more at a time than memory has room for, and sets the marker for the rest', async (t) => {
  const { redis, ours } = setUp(t)
  const enqueue = createJobAdder(redis, ours)
  const text = 'x'.repeat(384 * 1024)
  for (const id of ['a', 'b', 'c', 'd'])
    await enqueue({
      id,
      lane: 'interactive',
      job: { ...JOB, threads: [{ ...THREAD, quotes: [{ text }] }] },
    })
  const fetch = createFetchJobs(redis, ours, 'a-worker', LOCK_MS)
  await redis.del(`${ours.jobs.interactive}marker`)
  assert.deepEqual(
    (await fetch('interactive', TOKEN, ROOM)).jobs.map(({ id }) => id),
    ['a', 'b', 'c'],
  )
  assert.equal(await redis.exists(`${ours.jobs.interactive}marker`), 1)
  assert.deepEqual(
    (await fetch('interactive', TOKEN, ROOM)).jobs.map(({ id }) => id),
    ['d'],
  )
})

it('fetches a job that failed, was delayed and was promoted as BullMQ does', async (t) => {
  const { steps, left, worker, onOurs } = setUp(t)
  await steps.add()
  const first = await steps.fetch()
  const ours = await bullmq.Job.fromId<IngestJob>(onOurs.worker, ID)
  const error = new Error('no')
  for (const job of [ours, first.theirs]) {
    await job?.moveToFailed(error, TOKEN)
    assert.equal(await job?.getState(), 'delayed')
  }
  const delayed = await left()
  assert.deepEqual(Object.keys(delayed.ours).sort(), Object.keys(delayed.theirs).sort())
  await ours?.promote()
  await (await bullmq.Job.fromId<IngestJob>(worker, ID))?.promote()
  const promoted = await left()
  assert.deepEqual(promoted.ours, promoted.theirs)
  const second = await steps.fetch()
  assertSameJob(second.ours, second.theirs)
  assert.deepEqual([second.ours?.attempt, second.ours?.redelivered], [2, true])
  const fetched = await left()
  assert.deepEqual(fetched.ours, fetched.theirs)
})

it('fetches a job that was stalled as BullMQ does', async (t) => {
  const { steps, left, redis, ours, theirs, worker, onOurs } = setUp(t)
  await steps.add()
  await steps.fetch()
  for (const [keys, one] of [
    [ours, onOurs.worker],
    [theirs, worker],
  ] as const) {
    await redis.del(`${keys.jobs.interactive}${ID}:lock`)
    const stalled = once(one, 'stalled')
    await one.startStalledCheckTimer()
    await stalled
  }
  const { ours: job, theirs: other } = await steps.fetch()
  assertSameJob(job, other)
  assert.deepEqual([job?.attempt, job?.redelivered, job?.quarantined], [2, true, true])
  const { ours: one, theirs: another } = await left()
  // Each check of a worker notes the active jobs again. Only Sluice counts the stall as an attempt.
  const withAttempt = { ...Object(another[ID]), atm: '1', suspect: '1' }
  assert.deepEqual({ ...one, stalled: [] }, { ...another, stalled: [], [ID]: withAttempt })
})

it('fetches a job that was stalled alone, and leaves those that follow where they are', async (t) => {
  const { redis, ours } = setUp(t)
  const enqueue = createJobAdder(redis, ours)
  for (const id of ['a', 'b', 'c', 'd']) await enqueue({ id, lane: 'interactive', job: JOB })
  const lane = ours.jobs.interactive
  for (const id of ['b', 'c']) await redis.hset(`${lane}${id}`, 'stc', 1)
  const fetch = createFetchJobs(redis, ours, 'a-worker', LOCK_MS)
  const left = async () => [
    await redis.lrange(`${lane}active`, 0, -1),
    await redis.lrange(`${lane}wait`, 0, -1),
  ]
  for (const [fetched, active, waiting] of [
    [['a'], ['a'], ['d', 'c', 'b']],
    [['b'], ['b', 'a'], ['d', 'c']],
    [['c'], ['c', 'b', 'a'], ['d']],
    [['d'], ['d', 'c', 'b', 'a'], []],
  ]) {
    const { jobs } = await fetch('interactive', TOKEN, ROOM)
    assert.deepEqual(
      jobs.map(({ id }) => id),
      fetched,
    )
    assert.deepEqual(await left(), [active, waiting])
  }
  assert.equal(await redis.exists(`${lane}c:lock`), 1)
})

it('fetches no job that exceeds the capacity, except into an empty one, and returns its size', async (t) => {
  const { redis, ours } = setUp(t)
  const enqueue = createJobAdder(redis, ours)
  for (const id of ['a', 'b']) await enqueue({ id, lane: 'interactive', job: JOB })
  const bytes = (await redis.hget(`${ours.jobs.interactive}a`, 'data'))?.length ?? 0
  const fetch = createFetchJobs(redis, ours, 'a-worker', LOCK_MS)
  const capacity = { jobs: 10, bytes: bytes - 1, isEmpty: false }
  assert.deepEqual(await fetch('interactive', TOKEN, capacity), { ...NONE, misfit: bytes })
  assert.deepEqual(await redis.lrange(`${ours.jobs.interactive}wait`, 0, -1), ['b', 'a'])
  assert.equal(await redis.exists(`${ours.jobs.interactive}active`), 0)
  const { jobs, misfit } = await fetch('interactive', TOKEN, { ...capacity, isEmpty: true })
  assert.deepEqual([jobs.map((job) => [job.id, job.bytes]), misfit], [[['a', bytes]], bytes])
})

it('loses no job if its script fails between two jobs', async (t) => {
  const { redis, ours } = setUp(t)
  const enqueue = createJobAdder(redis, ours)
  for (const id of ['a', 'b', 'c']) await enqueue({ id, lane: 'interactive', job: JOB })
  const lane = ours.jobs.interactive
  await redis.del(`${lane}b`)
  await redis.set(`${lane}b`, 'no hash')
  await assert.rejects(
    createFetchJobs(redis, ours, 'a-worker', LOCK_MS)('interactive', TOKEN, ROOM),
  )
  const left = [
    ...(await redis.lrange(`${lane}active`, 0, -1)),
    ...(await redis.lrange(`${lane}wait`, 0, -1)),
  ]
  assert.deepEqual(left.sort(), ['a', 'b', 'c'])
})

it('renews locks as BullMQ does, but none of another worker', async (t) => {
  const { steps, left, redis, ours, theirs, worker } = setUp(t)
  await steps.add()
  const { ours: job } = await steps.fetch()
  assert(job)
  for (const { jobs } of [ours, theirs]) {
    await redis.pexpire(`${jobs.interactive}${ID}:lock`, 500)
    await redis.sadd(`${jobs.interactive}stalled`, ID)
  }
  await createLocks(redis, ours, 'interactive', LOCK_MS).renew([job])
  await worker.extendJobLocks([ID], [TOKEN], LOCK_MS)
  const { ours: one, theirs: other } = await left()
  assert.deepEqual(one, other)
  assert.deepEqual(one[`${ID}:lock`], [TOKEN, true])
  await redis.set(`${ours.jobs.interactive}${ID}:lock`, 'of another worker', 'PX', 500)
  await createLocks(redis, ours, 'interactive', LOCK_MS).renew([job])
  assert((await redis.pttl(`${ours.jobs.interactive}${ID}:lock`)) <= 500)
})

it('pauses and resumes a lane as BullMQ does', async (t) => {
  const { steps, left, queue, redis, ours: keys } = setUp(t)
  // Operators pause a lane by this script of `operations`.
  const script = openScript(
    redis,
    new URL('../../../operations/src/failed/operations.lua#lane', import.meta.url),
  )
  const operate = (kind: 'pause' | 'resume') =>
    script(keys.base, kind, 'interactive', keys.jobs.interactive, '{}', 1_000, 1, kind, '{}')
  await Promise.all([queue.pause(), operate('pause')])
  await steps.add()
  const paused = await left()
  assert.deepEqual(paused.ours, paused.theirs)
  assert.deepEqual(await steps.fetch(), { ours: undefined, theirs: undefined })
  await Promise.all([queue.resume(), operate('resume')])
  const { ours, theirs } = await steps.fetch()
  assertSameJob(ours, theirs)
  assert.equal(ours?.id, ID)
  const resumed = await left()
  assert.deepEqual(resumed.ours, resumed.theirs)
})

it('fetches nothing of a paused lane, but lets delayed jobs wait that are due, as BullMQ does', async (t) => {
  const { steps, left, queue, onOurs } = setUp(t)
  for (const one of [queue, onOurs.queue]) {
    await one.add(
      'due',
      { stamp: 0, ...JOB },
      { ...JSON.parse(JOB_OPTIONS), delay: 1, jobId: 'due' },
    )
    await one.pause()
  }
  await new Promise((resolve) => setTimeout(resolve, 10))
  assert.deepEqual(await steps.fetch(), { ours: undefined, theirs: undefined })
  const { ours, theirs } = await left()
  assert.deepEqual(ours, theirs)
  assert.deepEqual(ours.wait, ['due'])
})

it('does not know limits of a queue, which nobody sets through Sluice', async (t) => {
  const { redis, ours, onOurs } = setUp(t)
  await onOurs.queue.setGlobalRateLimit(1, 60_000)
  await onOurs.queue.setGlobalConcurrency(1)
  const add = createJobAdder(redis, ours)
  for (const id of ['first', 'second']) await add({ id, lane: 'interactive', job: JOB })
  const { jobs } = await createFetchJobs(
    redis,
    ours,
    'a-worker',
    LOCK_MS,
  )('interactive', TOKEN, ROOM)
  assert.deepEqual(
    jobs.map(({ id }) => id),
    ['first', 'second'],
  )
})
