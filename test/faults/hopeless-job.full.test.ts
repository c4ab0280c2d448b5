import assert from 'node:assert/strict'
import { createKey } from '@sluice/credentials/keys'
import { sourceIdOf } from '@sluice/store/ids'
import type { StartedProcess } from '@sluice/test-support'
import { type TestContext, test } from 'vitest'
import { assertStored } from '../support/assert-stored.ts'
import { openQueue, type QueueView } from '../support/open-queue.ts'
import { aThread, postThread } from '../support/post-thread.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'
import { type DeadlyStore, openDeadlyStore } from './deadly-store.ts'

const ATTEMPTS = 5

test('a job that crashes every worker fails after five tries; jobs locked beside it are stored', async (t) => {
  const { sluice, view, poison, deadly } = await startWithPoison(t)
  assert.equal((await postThread(sluice, poison, 'respond-async')).status, 202)
  const others = await Promise.all(
    Array.from({ length: 30 }, () => postThread(sluice, aThread(), 'respond-async')),
  )

  const workers = await crashWorkers(sluice, view, deadly, ATTEMPTS)
  workers.push(await sluice.startWorker())
  await until('the job has failed', async () => (await view.bulk.getFailedCount()) > 0)
  await view.drained()
  const failed = await view.bulk.getFailed()
  assert.deepEqual(
    failed.map((job) => job.name),
    [`custom/${poison.externalId}`],
  )
  assert.match(failed[0]?.failedReason ?? '', /5 attempts.*crashed/)
  await assertStored(sluice.db, others, { afterCrash: true })
  const tries = workers
    .flatMap(({ log }) => log)
    .flatMap(({ msg, attempt }) => (msg === 'job.stored' ? [Number(attempt)] : []))
  assert(Math.max(...tries) <= 2, 'a crash in another job\u2019s own try counted against a job')
})

test('crashes and failures count together, the failed job keeps its reason, and it can run again when the cause is fixed', async (t) => {
  const { sluice, view, poison, sourceId, deadly } = await startWithPoison(t)
  const sources = sluice.db.collection<{ _id: string }>('sources')
  await sources.insertOne({ _id: sourceId }) // Sluice never writes such a document, so every job for it fails
  const caller = postThread(sluice, poison)
  await crashWorkers(sluice, view, deadly, 2)
  const worker = await sluice.startWorker()
  const { status, body } = await caller
  assert.deepEqual([status, body.code], [500, 'job_failed'])

  await worker.line((line) => line.msg === 'job.failed')
  const failures = worker.log.flatMap(({ msg, attempt }) =>
    msg === 'job.try_failed' || msg === 'job.failed' ? [attempt] : [],
  )
  assert.deepEqual(failures, [3, 4, 5])
  const [job] = await view.queue.getFailed()
  assert.equal(job?.id, body.jobId)
  assert.match(job?.failedReason ?? '', /./)
  const found = await fetch(`${sluice.url}/jobs/${job?.id}`, {
    headers: { 'x-api-key': sluice.key },
  })
  assert.match(await found.text(), new RegExp(`"state":"failed",.*"attempts":${ATTEMPTS},`))

  await sources.deleteOne({ _id: sourceId })
  const { key } = await createKey(sluice.db, { role: 'operator', name: 'on call' })
  const headers = { 'x-api-key': key, 'content-type': 'application/json' }
  const ids = JSON.stringify({ ids: [job?.id] })
  const retry = await fetch(`${sluice.url}/admin/jobs:retry`, {
    method: 'POST',
    headers,
    body: ids,
  })
  assert.equal(retry.status, 202, await retry.text())
  await until('the retry', async () => (await view.queue.getFailedCount()) === 0)
  await view.drained()
  assert.equal(await view.queue.getFailedCount(), 0)
  await assertStored(sluice.db, [{ ...(await caller), status: 202 }], { afterCrash: true })
})

async function startWithPoison(t: TestContext) {
  // The caller waits until the job has failed, on a slow machine too.
  const sluice = await startSluice(t, { workers: 0, settings: { WAIT_SECONDS: '60' } })
  const view = openQueue(t, sluice.settings)
  const poison = aThread()
  const sourceId = sourceIdOf('acme', { service: 'custom', externalId: poison.externalId })
  const deadly = await openDeadlyStore(t, sluice.settings.MONGODB_URL ?? '', sourceId)
  return { sluice, view, poison, sourceId, deadly }
}

/** Lets the poison kill one worker after the other. */
async function crashWorkers(
  sluice: TestSluice,
  { expireLocks }: QueueView,
  deadly: DeadlyStore,
  times: number,
): Promise<StartedProcess[]> {
  const workers: StartedProcess[] = []
  for (let crash = 0; crash < times; crash++) {
    const worker = await sluice.startWorker({ MONGODB_URL: deadly.url })
    workers.push(worker)
    await deadly.kills(worker)
    await expireLocks()
  }
  return workers
}
