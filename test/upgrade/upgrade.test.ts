import assert from 'node:assert/strict'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createKey } from '@sluice/credentials/keys'
import { connectRetrying, LAYOUT } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import type { QuoteDocument, SourceDocument } from '@sluice/store'
import {
  beforeSuite,
  type StartedProcess,
  startProcess,
  type TestScope,
} from '@sluice/test-support'
import { describe, test } from 'vitest'
import { createCaller } from '../e2e/support/caller.ts'
import { jobIn, jobPathIn, operationIn, pageIn, storedIn } from '../e2e/support/read-reply.ts'
import { someThread } from '../e2e/support/some-thread.ts'
import { assertConsistent, assertStored } from '../support/assert-stored.ts'
import { startBalancer } from '../support/balancer.ts'
import { mongodbCan } from '../support/mongodb-can.ts'
import { openQueue } from '../support/open-queue.ts'
import { postSteadily } from '../support/post-steadily.ts'
import { isFull } from '../support/scale.ts'
import { startSluice, type TestSluice, untilKeyIsKnown } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'
import { checkOutPrevious } from './previous-release.ts'

const REPLICAS = 2

describe.runIf(isFull)('an upgrade, and the way back', () => {
  let previous: string
  beforeSuite(async (t) => {
    previous = await checkOutPrevious(t)
  })

  /** Starts an API and a worker of a release. */
  async function startRelease(
    t: TestScope,
    { settings, startApi, startWorker }: TestSluice,
    release: string,
  ) {
    if (release === 'this release') return { ...(await startApi()), worker: await startWorker() }
    const start = (app: string) =>
      startProcess(t, pathToFileURL(join(previous, `apps/${app}/src/main.ts`)).href, settings)
    const [api, worker] = [start('api'), start('worker')]
    const { port } = await api.line(({ msg }) => msg === 'api.listening')
    await worker.line(({ msg }) => msg === 'worker.listening')
    return { api, worker, url: `http://127.0.0.1:${port}` }
  }

  test('replacing each API and worker in turn under load, up and down, fails no request and leaves no load', {
    timeout: 300_000,
  }, async (t) => {
    const sluice = await startSluice(t, { workers: 0 })
    const balancer = await startBalancer(t)
    const running: Awaited<ReturnType<typeof startRelease>>[] = []
    const replace = async (release: string) => {
      const next = await startRelease(t, sluice, release)
      await untilKeyIsKnown(next.url, sluice.key)
      await balancer.add(next)
      running.push(next)
      if (running.length <= REPLICAS) return
      const oldest = running.shift()
      for (const process of [oldest?.api, oldest?.worker]) await stop(process)
    }
    for (let replica = 0; replica < REPLICAS; replica++) await replace('the previous one')
    await stop(sluice.api)
    let turn = 0
    const load = postSteadily(
      t,
      { url: balancer.url, key: sluice.key },
      {
        callers: 8,
        deletes: false,
        prefer: () => (turn++ % 4 ? undefined : 'respond-async'),
      },
    )
    await load.moreStored(30)
    for (const release of ['this release', 'the previous one'])
      for (let replica = 0; replica < REPLICAS; replica++) {
        await replace(release)
        await load.moreStored(60)
      }
    const posted = await load.stop()
    await openQueue(t, sluice.settings).drained()
    const failed = posted.filter(({ status }) => status !== 200 && status !== 202)
    assert.deepEqual(
      failed.map(({ status, body }) => ({ status, ...body })),
      [],
    )
    // While MongoDB is slow, a worker of the previous release stops without settling its last
    // batches.
    await assertStored(sluice.db, posted, { afterCrash: true })
    assert.deepEqual(await loadOf(t, sluice), [0, 0, 0])
  })

  for (const [older, newer] of [
    ['the previous one', 'this release'],
    ['this release', 'the previous one'],
  ] as const)
    test(`${newer} finds what ${older} left: waiting, failed and retained jobs, claims, an unfinished import`, {
      timeout: 120_000,
    }, async (t) => {
      t.skip(!mongodbCan.refuseByValidator)
      const sluice = await startSluice(t, { workers: 0 })
      await stop(sluice.api)
      const before = await startRelease(t, sluice, older)
      const { key } = await createKey(sluice.db, { role: 'operator', name: 'on call' })
      const callers = ({ url }: { url: string }) => ({
        importer: createCaller({ url, key: sluice.key }),
        operator: createCaller({ url, key }),
      })
      const left = callers(before)
      const thread = (externalId: string, speaker = 'ada') =>
        someThread({ externalId, quotes: [{ externalId: 'q', text: 'two words', speaker }] })
      await untilKeyIsKnown(before.url, sluice.key)
      await sluice.db.createCollection('quotes', { validator: { speaker: { $ne: 'refused' } } })

      const claimed = storedIn(
        await left.importer.post(thread('claimed'), { 'idempotency-key': 'once' }),
      )
      const retained = await left.importer.post(thread('retained'), { prefer: 'respond-async' })
      const failed = await left.importer.post(thread('failed', 'refused'), {
        prefer: 'respond-async',
      })
      const states = await Promise.all(
        [retained, failed].map((reply) =>
          left.importer.get(jobPathIn(reply), { prefer: 'wait=30' }),
        ),
      )
      assert.deepEqual(
        states.map((reply) => jobIn(reply).state),
        ['completed', 'failed'],
      )
      for (const lane of ['interactive', 'bulk'])
        await left.operator.send(`/admin/lanes/${lane}:pause`, { method: 'POST' })
      const waiting = await left.importer.post(thread('waiting'), { prefer: 'wait=0' })
      const lines = ['one', 'two']
        .map((externalId) => JSON.stringify(thread(externalId)))
        .join('\n')
      const imported = await left.importer.postImport(lines, { prefer: 'respond-async' })
      for (const process of [before.api, before.worker]) await stop(process)

      const after = await startRelease(t, sluice, newer)
      await untilKeyIsKnown(after.url, sluice.key)
      const found = callers(after)
      const again = storedIn(
        await found.importer.post(thread('claimed'), { 'idempotency-key': 'once' }),
      )
      assert.deepEqual(again, claimed)
      assert.equal(jobIn(await found.importer.get(jobPathIn(retained))).state, 'completed')
      assert.equal(pageIn(await found.operator.get('/admin/jobs?externalId=failed')).jobs.length, 1)
      for (const lane of ['interactive', 'bulk'])
        await found.operator.send(`/admin/lanes/${lane}:resume`, { method: 'POST' })
      await sluice.db.command({ collMod: 'quotes', validator: {}, validationLevel: 'off' })
      const retry = {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: { filter: { externalId: 'failed' } },
      }
      operationIn(await found.operator.send('/admin/jobs:retry', retry), 202)
      for (const reply of [waiting, failed])
        await until('the job has completed', async () => {
          const job = jobIn(await found.importer.get(jobPathIn(reply), { prefer: 'wait=5' }))
          return job.state === 'completed'
        })
      const path = imported.headers.get('location') ?? ''
      await until('the import has ended', async () =>
        /"completed"/.test((await found.importer.get(path)).text),
      )
      assert.match((await found.importer.get(path)).text, /"created":2/)
      await openQueue(t, sluice.settings).drained()
      assert.deepEqual(await loadOf(t, sluice), [0, 0, 0])
    })

  test('a deletion that an older worker gets, and a post to a deleted thread, fail, and a retry after the upgrade stores both', {
    timeout: 120_000,
  }, async (t) => {
    const sluice = await startSluice(t)
    const { key } = await createKey(sluice.db, { role: 'operator', name: 'on call' })
    const [importer, operator] = [createCaller(sluice), createCaller({ ...sluice, key })]
    const thread = (externalId: string) =>
      someThread({ externalId, quotes: [{ externalId: 'q', text: 'two words' }] })
    const remove = (externalId: string) =>
      importer.send(`/sources?service=slack&externalId=${externalId}`, { method: 'DELETE' })
    for (const externalId of ['gone', 'kept']) storedIn(await importer.post(thread(externalId)))
    assert.equal((await remove('gone')).status, 200)
    for (const worker of sluice.workers) await stop(worker)

    const main = pathToFileURL(join(previous, 'apps/worker/src/main.ts')).href
    const older = startProcess(t, main, sluice.settings)
    const failed = await Promise.all([remove('kept'), importer.post(thread('gone'))])
    assert.deepEqual(
      failed.map(({ status }) => status),
      [500, 500],
    )
    await stop(older)
    const find = async (externalId: string) =>
      (await importer.get(`/sources?service=slack&externalId=${externalId}`)).text
    assert.match(await find('kept'), /two words/)

    await sluice.startWorker()
    for (const externalId of ['gone', 'kept']) {
      const retry = {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: { filter: { externalId } },
      }
      operationIn(await operator.send('/admin/jobs:retry', retry), 202)
    }
    await until('the deletion', async () => /source_unknown/.test(await find('kept')))
    await until('the post', async () => /two words/.test(await find('gone')))
    await openQueue(t, sluice.settings).drained()
    const sources = sluice.db.collection<SourceDocument>('sources')
    const quotes = sluice.db.collection<QuoteDocument>('quotes')
    assertConsistent(await sources.find().toArray(), await quotes.find().toArray())
    assert.deepEqual(await loadOf(t, sluice), [0, 0, 0])
  })
})

test('a process that can’t read what a newer release has written stops in order, and does not start again', async (t) => {
  const sluice = await startSluice(t)
  const dashboard = startProcess(t, 'apps/dashboard/src/main.ts', sluice.settings)
  await dashboard.line(({ msg }) => msg === 'dashboard.listening')
  const redis = connectRetrying({ redisUrl: sluice.settings.REDIS_URL ?? '', queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  await redis.set(`${queueKeys(sluice.settings.QUEUE ?? '').base}layout`, LAYOUT.reads + 1)
  for (const running of [sluice.api, ...sluice.workers, dashboard]) {
    assert.deepEqual(await running.ended, { code: 0, signal: null })
    const { reason } = await running.line(({ msg }) => msg === 'process.stopping')
    assert.match(String(reason), /newer release/)
  }
  for (const app of ['api', 'worker']) {
    const started = startProcess(t, `apps/${app}/src/main.ts`, sluice.settings)
    assert.deepEqual(await started.ended, { code: 1, signal: null })
  }
})

async function stop(process: StartedProcess | undefined): Promise<void> {
  process?.signal('SIGTERM')
  assert.deepEqual(await process?.ended, { code: 0, signal: null })
}

/** The threads, bytes and interactive threads that count as load. */
async function loadOf(
  t: TestScope,
  { settings: { REDIS_URL = '', QUEUE = '' } }: TestSluice,
): Promise<number[]> {
  const redis = connectRetrying({ redisUrl: REDIS_URL, queue: QUEUE }, () => {})
  t.onTestFinished(() => redis.disconnect())
  const { base } = queueKeys(QUEUE)
  const read = `local t = {cmsgpack.unpack(redis.call('HGET', KEYS[1], 'all'))} return {t[1], t[2], t[3]}`
  return Object(await redis.eval(read, 1, `${base}load`))
}
