import assert from 'node:assert/strict'
import type { Operation } from '@sluice/contract'
import { createKey } from '@sluice/credentials/keys'
import { createEnqueuer, newJobId, openQueue, queueKeys } from '@sluice/queue'
import { createBatchStore, mongoCommands } from '@sluice/store'
import { UNBOUNDED } from '@sluice/test-support'
import { UnrecoverableError, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import type { Db } from 'mongodb'
import { type TestContext, test } from 'vitest'
import { openOperator } from '../support/open-operator.ts'
import { runSluice } from '../support/run-sluice.ts'
import { prepareSluice, startSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'

const JOBS = 80

test('an operation goes on after the SIGKILL of the replica that carried it out, and any replica tells its progress', async (t) => {
  const sluice = await startSluice(t, { workers: 0, settings: { OPERATION_JOBS_PER_SECOND: '10' } })
  const other = await sluice.startApi()
  const queue = await failJobs(t, sluice.settings)
  const { key } = await createKey(sluice.db, { role: 'operator', name: 'on call' })
  const headers = { 'x-api-key': key, 'content-type': 'application/json' }
  const body = JSON.stringify({ filter: { reason: 'broken' } })
  // So the first replica carries out the operation.
  other.api.signal('SIGSTOP')
  const opened = await fetch(`${sluice.url}/admin/jobs:retry`, { method: 'POST', headers, body })
  assert.equal(opened.status, 202)
  const progress = async (url: string): Promise<Operation> => {
    const answer = await fetch(url + opened.headers.get('location'), { headers })
    return JSON.parse(await answer.text())
  }

  const examined = await until('a first step', async () => (await progress(sluice.url)).examined)
  sluice.api.signal('SIGKILL')
  await sluice.api.ended
  other.api.signal('SIGCONT')
  assert.ok(examined < JOBS, 'the operation was over before its replica was killed')
  await until(
    'the end of the operation',
    async () => (await progress(other.url)).state === 'completed',
  )
  const { done, ...operation } = await progress(other.url)
  assert.deepEqual([operation.total, operation.examined], [JOBS, JOBS])
  // Jobs that were moved in a step that was not recorded are not counted.
  assert.ok(done >= JOBS - 10 && done <= JOBS, `${done} done`)
  assert.equal(await queue.getFailedCount(), 0)
  assert.equal(await queue.getWaitingCount(), JOBS)
})

const THREADS = 100
/** Fewer, because retention rests most of the time. */
const DUE = 20

test('the deletion of a tenant goes on after the SIGKILL of its replica and of the worker', async (t) => {
  const sluice = await startSluice(t, { settings: { OPERATION_JOBS_PER_SECOND: '50' } })
  const left = await storeThreads(sluice.db)
  const deleting = runSluice(sluice, 'tenants', 'delete', 'acme', '--yes')
  await until('some are deleted', async () => (await left()) < THREADS)
  for (const process of [sluice.api, ...sluice.workers]) process.signal('SIGKILL')
  assert.ok((await left()) > 0, 'all were deleted before the processes were killed')
  await Promise.all([sluice.startApi(), sluice.startWorker()])
  const { code, stdout } = await deleting
  assert.equal(code, 0)
  assert.match(stdout, new RegExp(` and ${THREADS} threads\\.$`, 'm'))
  assert.equal(await left(), 0)
  assert.equal(await sluice.db.collection('quotes').countDocuments(), 0)
})

test('a run of retention goes on after the SIGKILL of its replica and of the worker, with exact counts', async (t) => {
  const settings = { OPERATION_JOBS_PER_SECOND: '50', RETAIN_DAYS: '30' }
  const prepared = await prepareSluice(t, { settings })
  const left = await storeThreads(prepared.db, DUE, 40)
  const [{ api }, worker] = await Promise.all([prepared.startApi(), prepared.startWorker()])
  await until('some are deleted', async () => (await left()) < DUE)
  for (const process of [api, worker]) process.signal('SIGKILL')
  assert.ok((await left()) > 0, 'all were deleted before the processes were killed')
  const [{ url }] = await Promise.all([prepared.startApi(), prepared.startWorker()])
  await until('all are deleted', async () => (await left()) === 0)
  const { readVerdict } = await openOperator({ ...prepared, url })
  const said = new RegExp(`^Retention: ${DUE} of ${DUE} threads that were due`)
  await until('the verdict counts each once', async () =>
    (await readVerdict()).some((text) => said.test(text)),
  )
  assert.equal(await prepared.db.collection('quotes').countDocuments(), 0)
})

/** Stores threads as if they had been posted some days ago. Returns how many are left of them. */
async function storeThreads(db: Db, count = THREADS, days = 0): Promise<() => Promise<number>> {
  const store = createBatchStore(mongoCommands(db))
  const now = (Date.now() - days * 86_400_000) * 1_000
  const requests = Array.from({ length: count }, (_, at) => ({
    ...{ id: `r${at}`, tenant: 'acme', stamp: now + at, redelivered: false },
    thread: {
      source: { service: 'custom' as const, externalId: `t${at}`, title: 'T' },
      quotes: [{ text: 'one' }, { text: 'two' }],
    },
  }))
  await store.store(requests)
  await store.settle()
  return () => db.collection('sources').countDocuments({ tenant: 'acme' })
}

/** Fills a queue with failed jobs at once: a worker process would need five tries for each. */
async function failJobs(t: TestContext, { REDIS_URL = '', QUEUE = '' }: Record<string, string>) {
  const redis = new Redis(REDIS_URL, { maxRetriesPerRequest: null })
  const keys = queueKeys(QUEUE)
  const queue = openQueue(keys, 'bulk', redis)
  const worker = new Worker(keys.queues.bulk, null, {
    connection: redis,
    prefix: keys.prefix,
    autorun: false,
  })
  t.onTestFinished(async () => {
    await worker.close(true)
    redis.disconnect()
  })
  await until('Redis', () => redis.status === 'ready')
  const { enqueue } = createEnqueuer(keys, redis, UNBOUNDED)
  for (let at = 0; at < JOBS; at++) {
    const threads = [
      { source: { service: 'custom' as const, externalId: `t${at}`, title: 'T' }, quotes: [] },
    ]
    await enqueue(newJobId(), 'bulk', { tenant: 'acme', requestId: 'r', retained: true, threads })
    const job = await worker.getNextJob('token', { block: false })
    await job?.moveToFailed(new UnrecoverableError('the store was broken'), 'token')
  }
  return queue
}
