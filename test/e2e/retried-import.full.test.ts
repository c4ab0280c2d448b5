import assert from 'node:assert/strict'
import { createKey } from '@sluice/credentials/keys'
import { sourceIdOf } from '@sluice/store/ids'
import { type TestContext, test } from 'vitest'
import { runSluice } from '../support/run-sluice.ts'
import { startSluice, untilKeyIsKnown } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'
import { createCaller } from './support/caller.ts'
import { operationIn, pageIn } from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'
import { readMetric } from './support/until-metric.ts'

const IDS = ['stored', 'failed', 'stored too']

/**
 * An import of three threads, in one job that has failed: the store could not store the second
 * thread.
 */
async function failImport(t: TestContext) {
  const sluice = await startSluice(t)
  const { key } = await createKey(sluice.db, { role: 'operator', name: 'on call' })
  const at = (url: string) => ({
    importer: createCaller({ url, key: sluice.key }),
    operator: createCaller({ url, key }),
  })
  const { importer, operator } = at(sluice.url)
  const sources = sluice.db.collection<{ _id: string; title?: string }>('sources')
  const sourceId = (externalId: string) => sourceIdOf('acme', { service: 'slack', externalId })
  /** Sluice never writes such a document, so no job can store the thread. */
  const breakStore = (externalId: string) =>
    sources.replaceOne({ _id: sourceId(externalId) }, {}, { upsert: true })
  const remove = (externalId: string) => sources.deleteOne({ _id: sourceId(externalId) })
  const stored = () => sources.distinct('externalId')
  await breakStore('failed')
  const lines = IDS.map((externalId) => JSON.stringify(someThread({ externalId })))
  const posted = await importer.postImport(lines.join('\n'), { prefer: 'respond-async' })
  const id = await until('the job has failed', async () => {
    return pageIn(await operator.get('/admin/jobs')).jobs[0]?.id
  })
  await remove('failed')
  const path = posted.headers.get('location') ?? ''
  return { sluice, at, id, path, sources, sourceId, breakStore, remove, stored }
}

type Callers = ReturnType<Awaited<ReturnType<typeof failImport>>['at']>

async function retry({ operator }: Callers, id: string): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  operationIn(
    await operator.send('/admin/jobs:retry', { method: 'POST', headers, body: { ids: [id] } }),
    202,
  )
}

/** Resolves with the outcomes that are listed of the job, once it has completed. */
function completed({ operator }: Callers, id: string) {
  return until('the job has completed', async () => {
    const { hits } = JSON.parse((await operator.get(`/admin/find?q=${id}`)).text)
    return hits[0]?.state === 'completed' && hits[0].outcomes
  })
}

test.concurrent('a retry stores only the threads of a job that failed, and its record has all of them', async (t) => {
  const { sluice, at, id, path, sources, sourceId, breakStore, remove, stored } =
    await failImport(t)
  const callers = at(sluice.url)
  const [worker] = sluice.workers
  assert(worker)
  const countStored = () =>
    readMetric(worker, 'sluice_threads_stored_total', { outcome: 'created' })
  assert.equal(await countStored(), 2)
  await remove('stored')
  await breakStore('stored too')
  await retry(callers, id)
  assert.deepEqual(await completed(callers, id), { created: 3, updated: 0, unchanged: 0 })
  assert.deepEqual(await stored(), ['failed'])
  assert.deepEqual(await sources.findOne({ _id: sourceId('stored too') }), {
    _id: sourceId('stored too'),
  })
  const { state, summary, problems } = JSON.parse((await callers.importer.get(path)).text)
  assert.deepEqual([state, summary.created, summary.failed, problems], ['completed', 3, 0, []])
  await until('all threads are counted', async () => (await countStored()) === 3)
})

test.concurrent('after MongoDB was restored and doctor --after-restore, the retry of a failed job stores all of its threads', (t) =>
  storesAll(t, { isRetried: false }))

test.concurrent('after MongoDB was restored and doctor --after-restore, a retried job that waits stores all of its threads', (t) =>
  storesAll(t, { isRetried: true }))

async function storesAll(t: TestContext, { isRetried }: { isRetried: boolean }): Promise<void> {
  const { sluice, at, id, sources, stored } = await failImport(t)
  const stop = async (processes: typeof sluice.workers) => {
    for (const process of processes) process.signal('SIGTERM')
    for (const process of processes) await process.ended
  }
  await stop(sluice.workers)
  if (isRetried) {
    await retry(at(sluice.url), id)
    const failed = async () => pageIn(await at(sluice.url).operator.get('/admin/jobs')).jobs
    await until('the job waits', async () => (await failed()).length === 0)
  }
  await stop([sluice.api])
  await sources.deleteMany({})
  assert.match((await runSluice(sluice, 'doctor', '--after-restore')).stdout, /^Removed: /)
  const [{ url }] = await Promise.all([sluice.startApi(), sluice.startWorker()])
  await untilKeyIsKnown(url, sluice.key)
  if (!isRetried) await retry(at(url), id)
  assert.deepEqual(await completed(at(url), id), { created: 3, updated: 0, unchanged: 0 })
  assert.deepEqual((await stored()).sort(), [...IDS].sort())
}
