import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { QueuedJobs } from '@sluice/contract'
import { connectRetrying } from '@sluice/process/redis'
import { createEnqueuer, createFetchJobs, type Lane, newJobId, queueKeys } from '@sluice/queue'
import { createFail, openWorker, returnJob } from '@sluice/queue/test-support'
import { requiredUrl, testQueueName, UNBOUNDED } from '@sluice/test-support'
import { Job } from 'bullmq'
import { type TestContext, test, vi } from 'vitest'
import { createFailedJobs } from '../failed/failed-jobs.ts'
import { createOperations } from '../failed/operations.ts'
import { createReadState } from './overview.ts'

async function open(t: TestContext) {
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  await once(redis, 'ready')
  const keys = queueKeys(testQueueName())
  const enqueuer = createEnqueuer(keys, redis, UNBOUNDED)
  const lanes = { interactive: openLane('interactive'), bulk: openLane('bulk') }
  const readState = createReadState(redis, keys)
  t.onTestFinished(async () => {
    await Promise.all(Object.values(lanes).map(({ worker }) => worker.close(true)))
    redis.disconnect()
  })

  function openLane(lane: Lane) {
    const worker = openWorker(keys, lane, redis, 60_000).on('error', () => {})
    return { worker, find: (id: string) => Job.fromId(worker, id) }
  }

  async function fetch(lane: Lane, jobs: number) {
    const fetchJobs = createFetchJobs(redis, keys, 'a-worker', 60_000)
    return (await fetchJobs(lane, 'token', { jobs, bytes: 1_000_000, isEmpty: true })).jobs
  }

  return {
    redis,
    keys,
    fetch,
    enqueuer,
    failedJobs: createFailedJobs(redis, keys),
    returnJob: (job: Awaited<ReturnType<typeof fetch>>[number]) => returnJob(job, lanes[job.lane]),
    /** Adds a job of this age that has a number of threads. */
    async add(
      lane: Lane,
      ageSeconds: number,
      { threads = 1, tenant = 'acme' } = {},
    ): Promise<string> {
      const source = { service: 'slack', externalId: 'a', title: 'T' } as const
      // Ids of one millisecond have no order, and the oldest job is the one with the smallest id.
      const since = Date.now() - ageSeconds * 1000
      const hex = since.toString(16).padStart(12, '0')
      const id = `${hex.slice(0, 8)}-${hex.slice(8)}${newJobId().slice(13)}`
      const all = Array.from({ length: threads }, () => ({ source, quotes: [] }))
      await enqueuer.enqueue(id, lane, { tenant, requestId: 'r', retained: false, threads: all })
      await redis.hset(keys.jobs[lane] + id, 'timestamp', since)
      return id
    },
    /** Ends an attempt of each job that the lane can fetch now, for good or not. */
    async failNext(lane: Lane, { final = true, failedBytes = 1_000_000_000 } = {}): Promise<void> {
      for (const { id, token } of await fetch(lane, 100)) {
        if (final) await createFail(redis, keys, failedBytes)(id, { lane })
        else await (await lanes[lane].find(id))?.moveToFailed(new Error('no'), token)
      }
    },
    /**
     * Reads jobs, threads and the oldest job's age in tens of seconds: the test itself may take
     * some.
     */
    async stateOf(lane: Lane, state: QueuedJobs['state']) {
      const found = (await readState()).queued.find(
        (one) => one.lane === lane && one.state === state,
      )
      return found && [found.jobs, found.threads, Math.floor(found.oldestMs / 10_000) * 10]
    },
    operations: createOperations(redis, keys),
    paused: async () => (await readState()).paused,
  }
}

test('an empty queue has no jobs, no threads and no age', async (t) => {
  const { stateOf, paused } = await open(t)
  for (const lane of ['interactive', 'bulk'] as const)
    for (const state of ['waiting', 'delayed', 'active', 'failed'] as const)
      assert.deepEqual(await stateOf(lane, state), [0, 0, 0])
  assert.deepEqual(await paused(), {})
})

test('the age of a job does not depend on the clock of the replica that accepted it', async (t) => {
  const { enqueuer, stateOf } = await open(t)
  vi.useFakeTimers({ toFake: ['Date'] })
  t.onTestFinished(() => void vi.useRealTimers())
  vi.setSystemTime(Date.now() - 300_000)
  await enqueuer.enqueue(newJobId(), 'bulk', {
    tenant: 'acme',
    requestId: 'r',
    retained: false,
    threads: [],
  })
  assert.deepEqual(await stateOf('bulk', 'waiting'), [1, 0, 0])
})

test('jobs, threads and the age of the oldest job are counted by lane and state, and paused lanes are named', async (t) => {
  const { add, failNext, fetch, stateOf, enqueuer, paused, operations } = await open(t)
  await add('bulk', 50, { threads: 7 })
  await failNext('bulk')
  await add('bulk', 40, { threads: 6 })
  await failNext('bulk', { final: false })
  await add('bulk', 30, { threads: 5 })
  await add('bulk', 20, { threads: 4 })
  await fetch('bulk', 1)
  await add('bulk', 10, { threads: 3 })
  await add('interactive', 10)
  // The age of a failed job begins with its failure.
  assert.deepEqual(await stateOf('bulk', 'failed'), [1, 7, 0])
  assert.deepEqual(await stateOf('bulk', 'delayed'), [1, 6, 40])
  assert.deepEqual(await stateOf('bulk', 'active'), [1, 5, 30])
  assert.deepEqual(await stateOf('bulk', 'waiting'), [2, 7, 20])
  assert.deepEqual(await stateOf('interactive', 'waiting'), [1, 1, 10])
  await enqueuer.queues.interactive.pause()
  const { createdAt } = await operations.operateLane('pause', 'bulk', 'ada')
  await operations.operateLane('pause', 'bulk', 'grace')
  assert.deepEqual(await paused(), { interactive: {}, bulk: { by: 'ada', since: createdAt } })
  await operations.operateLane('resume', 'bulk', 'ada')
  await enqueuer.queues.bulk.pause()
  assert.deepEqual(await paused(), { interactive: {}, bulk: {} })
})

test('a second pause is added to the first, and a pause with an end ends at the next fetch after it', async (t) => {
  const { add, operations, paused, fetch, redis, keys } = await open(t)
  await add('bulk', 1)
  const first = await operations.operateLane('pause', 'bulk', 'ada', {
    why: 'upgrade',
    seconds: 60,
  })
  const pause = { by: 'ada', since: first.createdAt, why: 'upgrade', until: first.pause?.until }
  assert.deepEqual([first.pause, (await paused()).bulk], [pause, pause])
  const left = Date.parse(pause.until ?? '') - Date.now()
  assert(left > 30_000 && left < 90_000, `${left}`)
  const second = await operations.operateLane('pause', 'bulk', 'bob', {
    why: 'second \ud800',
    seconds: 600,
  })
  const both = { ...pause, why: 'upgrade; bob: second \ufffd', until: second.pause?.until }
  assert.deepEqual([second.pause, (await paused()).bulk], [both, both])
  assert(Date.parse(both.until ?? '') - Date.parse(pause.until ?? '') > 500_000)

  // As if the time had passed.
  async function expire() {
    const record = JSON.parse((await redis.hget(`${keys.base}paused`, 'bulk')) ?? '{}')
    await redis.hset(
      `${keys.base}paused`,
      'bulk',
      JSON.stringify({ ...record, ...(record.untilMs && { untilMs: 1 }) }),
    )
  }
  assert.equal((await fetch('bulk', 1)).length, 0)
  await expire()
  assert.equal((await fetch('bulk', 1)).length, 1)
  assert.deepEqual(await paused(), {})
  await operations.operateLane('pause', 'bulk', 'ada', { seconds: 60 })
  const { pause: endless } = await operations.operateLane('pause', 'bulk', 'bob')
  assert.deepEqual([endless?.by, endless?.until], ['ada', undefined])
  await expire()
  assert.equal((await fetch('bulk', 1)).length, 0)
  assert.equal((await operations.operateLane('resume', 'bulk', 'ada')).pause, undefined)
  assert.deepEqual(await paused(), {})
})

test('the oldest waiting job is found although a newer one of another tenant overtook most', async (t) => {
  const { add, stateOf, fetch } = await open(t)
  const oldest = await add('interactive', 60)
  for (let age = 59; age > 10; age--) await add('interactive', age)
  const first = await add('interactive', 2, { tenant: 'calm' })
  assert.deepEqual(await stateOf('interactive', 'waiting'), [51, 51, 60])
  assert.deepEqual(
    (await fetch('interactive', 2)).map(({ id }) => id),
    [oldest, first],
  )
})

test('the oldest waiting job is found among and behind jobs that were returned', async (t) => {
  const { add, stateOf, fetch, returnJob } = await open(t)
  for (let age = 600; age > 500; age -= 10) await add('bulk', age)
  const [oldest, second, third, ...others] = await fetch('bulk', 5)
  assert(oldest && second && third)
  for (const job of [oldest, third, second]) await returnJob(job)
  assert.deepEqual(await stateOf('bulk', 'waiting'), [8, 8, 600])
  for (const job of others) await returnJob(job)
  await fetch('bulk', 5)
  assert.deepEqual(await stateOf('bulk', 'waiting'), [5, 5, 550])
})

test('a job that was retried by hand is as old as its retry, also after it was returned', async (t) => {
  const { add, stateOf, failNext, failedJobs, fetch, returnJob } = await open(t)
  const id = await add('bulk', 3_600, { threads: 2 })
  await failNext('bulk')
  await add('bulk', 20)
  await failedJobs.move('retry', [id], 'ada')
  assert.deepEqual(await stateOf('bulk', 'waiting'), [2, 3, 20])
  await fetch('bulk', 1)
  assert.deepEqual(await stateOf('bulk', 'waiting'), [1, 2, 0])
  const [retried] = await fetch('bulk', 1)
  assert(retried)
  await returnJob(retried)
  assert.deepEqual(await stateOf('bulk', 'waiting'), [1, 2, 0])
})

test('the threads of failed jobs are those that are kept: not retried, discarded or evicted', async (t) => {
  const { add, stateOf, failNext, failedJobs } = await open(t)
  const ids = []
  for (const threads of [1, 2, 4, 8, 16]) ids.push(await add('bulk', 0, { threads }))
  await failNext('bulk')
  assert.deepEqual((await stateOf('bulk', 'failed'))?.slice(0, 2), [5, 31])
  const [retried = '', discarded = ''] = ids
  await failedJobs.move('retry', [retried], 'ada')
  await failedJobs.move('discard', [discarded], 'ada')
  assert.deepEqual((await stateOf('bulk', 'failed'))?.slice(0, 2), [3, 28])
  await failNext('bulk', { failedBytes: 1 })
  await add('bulk', 0, { threads: 32 })
  await failNext('bulk')
  assert.deepEqual((await stateOf('bulk', 'failed'))?.slice(0, 2), [1, 32])
})
