import assert from 'node:assert/strict'
import { createDeletionRecords } from '@sluice/boot/deletion-records'
import { connectRetrying } from '@sluice/process/redis'
import { createFetchJobs, type JobResult, newJobId, queueKeys } from '@sluice/queue'
import { createFail, createJobAdder } from '@sluice/queue/test-support'
import { quoteIdsOf, sourceIdOf } from '@sluice/store/ids'
import { hashSpeaker, listSuppressions, readKey } from '@sluice/store/suppressions'
import { requiredUrl, testDatabase, testQueueName } from '@sluice/test-support'
import { type TestContext, test } from 'vitest'
import { createFailedJobs } from '../failed/failed-jobs.ts'
import type { OpenOperation } from '../failed/operations.ts'
import { createSuppressions, eraseSpeaker } from './erase-speaker.ts'

async function open(t: TestContext) {
  const connect = () => connectRetrying({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  const [redis, other] = [connect(), connect()]
  t.onTestFinished(() => {
    redis.disconnect()
    other.disconnect()
  })
  return { redis, other, keys: queueKeys(testQueueName()), db: await testDatabase(t) }
}

const name = { service: 'slack', externalId: 'a' } as const
const thread = {
  source: { ...name, title: 'Ada asks' },
  quotes: [
    { externalId: 'q1', text: 'two words', speaker: 'Ada' },
    { externalId: 'q2', text: 'of Bob', speaker: 'Bob' },
  ],
}

test('what a failed job has of the speaker is marked before it is removed, because the process that marks it may die', async (t) => {
  const { redis, keys, db } = await open(t)
  const id = newJobId()
  const lane = 'bulk'
  const job = { tenant: 'acme', requestId: 'r', retained: false, threads: [thread] }
  await createJobAdder(redis, keys)({ id, lane, job })
  await createFetchJobs(
    redis,
    keys,
    'a-worker',
    5_000,
  )(lane, 'token', {
    ...{ jobs: 1, bytes: 1_000_000, isEmpty: true },
  })
  await createFail(redis, keys)(id, { lane })
  const payload = () => redis.hget(keys.jobs[lane] + id, 'data')

  const now = new Date().toISOString()
  const erases = {
    ...{ speaker: hashSpeaker(await readKey(db), 'acme', 'Ada'), dryRun: false },
    mode: 'redact' as const,
  }
  const filter = { tenant: 'acme' }
  const operation: OpenOperation = {
    operation: {
      ...{ id: 'o', kind: 'erase', state: 'active', by: 'k', filter, erases },
      ...{ createdAt: now, changedAt: now, examined: 0, done: 0, total: 0 },
    },
    request: { filter },
  }
  const marked: unknown[] = []
  let dies = true
  async function erase() {
    const results = new Map<string, JobResult>()
    const steps = eraseSpeaker(
      {
        ...{ redis, keys, db, failedJobs: createFailedJobs(redis, keys) },
        async enqueue(job, _lane, { threads }) {
          if (dies) throw new Error('the process dies')
          marked.push(...threads)
          results.set(job, { receipts: [] })
          return job
        },
        findResults: async () => results,
      },
      operation,
    )
    for await (const _ of steps);
  }
  await assert.rejects(erase(), /dies/)
  dies = false
  await erase()
  const sourceId = sourceIdOf('acme', name)
  const quoteIds = quoteIdsOf(sourceId, thread.quotes).slice(0, 1)
  assert.deepEqual(marked, [{ deletes: { sourceId, quoteIds }, name }])
  assert.doesNotMatch((await payload()) ?? assert.fail(), /Ada|two words/)
  assert.match((await payload()) ?? '', /of Bob/)
})

test('a suppression whose end could not be recorded is ended and recorded when the request is repeated', async (t) => {
  const { redis, other, keys, db } = await open(t)
  const speaker = hashSpeaker(await readKey(db), 'acme', 'Ada')
  const suppressions = createSuppressions(redis, keys, db)
  await suppressions.open('acme', { speaker, by: 'k', at: new Date(), erasure: 'e' })
  other.disconnect()
  await assert.rejects(createSuppressions(other, keys, db).end('acme', speaker))
  assert.deepEqual(await suppressions.end('acme', speaker), { id: speaker, outcome: 'ended' })
  assert.deepEqual(await listSuppressions(db, 'acme', '', 10), [])
  const records = []
  for await (const { kind, ...record } of createDeletionRecords(redis, keys, db).stored())
    records.push([kind, 'opened' in record])
  assert.deepEqual(records, [['suppression', false]])
})

test('of two ends of a suppression at once, one ends it, and the other says that it is absent', async (t) => {
  const { redis, keys, db } = await open(t)
  const speaker = hashSpeaker(await readKey(db), 'acme', 'Ada')
  const suppressions = createSuppressions(redis, keys, db)
  await suppressions.open('acme', { speaker, by: 'k', at: new Date(), erasure: 'e' })
  const ends = await Promise.all([1, 2].map(() => suppressions.end('acme', speaker)))
  assert.deepEqual(ends.map(({ outcome }) => outcome).sort(), ['absent', 'ended'])
})
