import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connectRetrying } from '@sluice/process/redis'
import { createFetchJobs, newJobId, queueKeys } from '@sluice/queue'
import { createJobAdder, createRecordTry } from '@sluice/queue/test-support'
import { requiredUrl, testQueueName } from '@sluice/test-support'
import { type TestContext, test } from 'vitest'
import { createReadJob } from '../jobs/read-job.ts'
import { createChangeJob } from './change-job.ts'
import { createFailedJobs } from './failed-jobs.ts'
import { createOperations } from './operations.ts'

const thread = (externalId: string, text: string) => ({
  source: { service: 'slack' as const, externalId, title: 'T' },
  quotes: [{ text, externalId: 'q' }],
})
/** Threads as an operator sends them: as in requests. */
const sent = (...threads: ReturnType<typeof thread>[]) =>
  JSON.stringify(threads.map(({ source, quotes }) => ({ ...source, quotes })))
const CAPACITY = { jobs: 1, bytes: 1_000_000, isEmpty: true }
const RECEIPT = {
  source: { outcome: 'created', wordCount: 1, createdAt: '2024-05-01T00:00:00.000Z' },
  outcomes: 'c',
} as const

/** A job of two threads, of which the second one failed. */
async function open(t: TestContext) {
  const redis = connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  await once(redis, 'ready')
  const keys = queueKeys(testQueueName())
  const operations = createOperations(redis, keys)
  const id = newJobId()
  const threads = [thread('stored', 'one'), thread('failed', 'two')]
  await createJobAdder(
    redis,
    keys,
  )({ id, lane: 'bulk', job: { tenant: 'acme', requestId: 'r', retained: false, threads } })
  const fetch = async () => (await createFetchJobs(redis, keys, 'w', 5_000)('bulk', 'token', CAPACITY)).jobs[0]
  const fetched = await fetch()
  assert(fetched !== undefined)
  const record = createRecordTry(redis, keys, {
    name: 'here:1',
    failedBytes: 1e9,
    onEvicted: assert.fail,
    onError: assert.fail,
  })
  const result = { receipts: [RECEIPT, null], failure: 'no' }
  await record(fetched, new Error('no'), [], { result, progress: {}, stacks: [] })
  return {
    ...{ redis, keys, operations, id, fetched, fetch },
    change: createChangeJob(redis, keys, operations),
    failedJobs: createFailedJobs(redis, keys),
    read: createReadJob(redis, keys).readAny,
  }
}

const NEVER = { changedAt: '' }
const CHANGED = { threads: sent(thread('failed', 'three\u2028 "')), ...NEVER }

test('a changed thread is stored in its place by a retry, and who changed it is recorded', async (t) => {
  const { redis, keys, operations, id, fetched, fetch, change, failedJobs, read } = await open(t)
  const bytes = async () => Number(await redis.get(`${keys.base}failures`))
  const before = [await bytes(), (await redis.hget(keys.jobs.bulk + id, 'data'))?.length ?? 0] as const
  assert.deepEqual(await change(id, CHANGED, 'ada'), [])
  const data = (await redis.hget(keys.jobs.bulk + id, 'data')) ?? ''
  assert.equal((await bytes()) - before[0], Buffer.byteLength(data) - before[1])
  const [operation] = await operations.list()
  assert.deepEqual([operation?.kind, operation?.by, operation?.jobId], ['change', 'ada', id])
  const job = await read(id)
  assert.equal(job?.progress.changedBy, 'ada')
  // The page that another operator sees is from before the change.
  assert.match((await change(id, CHANGED, 'grace')).join(), /load its page again/)
  // Whoever read the job before the change or before the retry changes nothing.
  assert.equal(await operations.change('bulk', id, { before: 'other', after: '' }, 'grace'), false)
  assert.equal(await failedJobs.move('retry', [id], 'ada'), 1)
  assert.equal(await operations.change('bulk', id, { before: data, after: '' }, 'grace'), false)
  assert.equal((await operations.list()).length, 1)
  const again = await fetch()
  assert.deepEqual(again?.data, {
    ...fetched.data,
    threads: [thread('stored', 'one'), thread('failed', 'three\u2028 "')],
  })
  assert.equal(again?.progress.changedBy, 'ada')
  const at = { changedAt: String(again?.progress.changedAt) }
  assert.match((await change(id, { ...CHANGED, ...at }, 'ada')).join(), /not failed any more/)
})

test('a change is refused if it is no valid thread, another one, or one more', async (t) => {
  const { redis, keys, id, change } = await open(t)
  const before = await redis.hget(keys.jobs.bulk + id, 'data')
  const refusals: [text: string, why: RegExp][] = [
    ['{', /JSON/],
    ['{}', /array/],
    [sent(thread('failed', 'a'), thread('stored', 'b')), /must have the threads that failed/],
    [sent(thread('stored', 'b')), /externalId must stay/],
    [sent(thread('failed', ' ')), /text/],
  ]
  for (const [threads, why] of refusals)
    assert.match((await change(id, { threads, ...NEVER }, 'ada')).join(), why, threads)
  assert.match((await change(newJobId(), CHANGED, 'ada')).join(), /not failed any more/)
  assert.equal(await redis.hget(keys.jobs.bulk + id, 'data'), before)
})
