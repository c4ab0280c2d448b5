import assert from 'node:assert/strict'
import { writeRule } from '@sluice/operations'
import { createBatchStore, mongoCommands, type SourceDocument } from '@sluice/store'
import type { Db } from 'mongodb'
import { type TestContext, test } from 'vitest'
import { preload } from '../faults/preloads/preload.ts'
import { openOperator } from '../support/open-operator.ts'
import { openQueue } from '../support/open-queue.ts'
import { runSluice } from '../support/run-sluice.ts'
import { prepareSluice, untilKeyIsKnown } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'
import { createCaller } from './support/caller.ts'
import { jobIn, jobPathIn, storedIn } from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'

const DAY_MS = 86_400_000
const quotesOf = (externalId: string) => [{ externalId, text: 'two words' }]

/** Stores threads of a tenant, as they were posted some days ago. */
async function storeOld(db: Db, tenant: string, days: Readonly<Record<string, number>>) {
  const store = createBatchStore(mongoCommands(db))
  const requests = Object.entries(days).map(([externalId, old], at) => ({
    ...{ id: `${tenant}-${at}`, tenant, redelivered: false },
    stamp: (Date.now() - old * DAY_MS) * 1_000 + at,
    thread: {
      source: { service: 'slack' as const, externalId, title: 'Old' },
      quotes: quotesOf('old'),
    },
  }))
  await store.store(requests)
  await store.settle()
}

/** Prepares a Sluice in which threads of acme are a year old, a day old and new. */
async function prepare(t: TestContext, settings: Record<string, string> = {}) {
  const prepared = await prepareSluice(t, { settings })
  const { db } = prepared
  await storeOld(db, 'acme', { older: 400, old: 365, young: 1 })
  const names = async (tenant = 'acme') =>
    (await db.collection<SourceDocument>('sources').find({ tenant }).toArray())
      .map(({ externalId }) => externalId)
      .sort()
  return { ...prepared, names }
}

test.concurrent('threads are deleted when their tenant, or its service, keeps them no longer', async (t) => {
  const { names, ...prepared } = await prepare(t, { RETAIN_DAYS: '30' })
  for (const tenant of ['globex', 'initech']) await storeOld(prepared.db, tenant, { old: 40 })
  await writeRule(prepared.db, { tenant: 'globex', seconds: null })
  await writeRule(prepared.db, { tenant: 'initech', seconds: (50 * DAY_MS) / 1_000 })
  const ofService = ['initech', '35d', '--service', 'slack', '--yes']
  await runSluice(prepared, 'tenants', 'retain', ...ofService)
  // A clock that is ahead deletes nothing early.
  const ahead = preload('shift-clock', { CLOCK_SHIFT_MS: String(60 * DAY_MS) })
  const [{ url }] = await Promise.all([prepared.startApi(ahead), prepared.startWorker(ahead)])
  await until('old threads are deleted', async () => (await names()).length === 1)
  assert.deepEqual(await names(), ['young'])
  assert.deepEqual(await names('globex'), ['old'])
  await until('those of a service, too', async () => (await names('initech')).length === 0)
  const { readVerdict } = await openOperator({ ...prepared, url })
  const said = /^Retention: 3 of 3 threads that were due \d+ s ago are deleted/
  await until('the verdict says it', async () =>
    (await readVerdict()).some((text) => said.test(text)),
  )
  assert.match((await runSluice(prepared, 'doctor')).stdout, /note {3}Retention: 3 of 3 /)
})

test.concurrent('nothing is deleted unless it is asked for', async (t) => {
  const { names, ...prepared } = await prepare(t)
  await storeOld(prepared.db, 'initech', { old: 40 })
  await writeRule(prepared.db, { tenant: 'initech', seconds: (35 * DAY_MS) / 1_000 })
  await Promise.all([prepared.startApi(), prepared.startWorker()])
  await until('what is asked for', async () => (await names('initech')).length === 0)
  assert.deepEqual(await names(), ['old', 'older', 'young'])
})

test.concurrent('a retention that is ended deletes no more than the job that waits', async (t) => {
  const { names, ...prepared } = await prepare(t, { RETAIN_DAYS: '30' })
  const many = Object.fromEntries(Array.from({ length: 10 }, (_, at) => [`old${at}`, 300 + at]))
  await storeOld(prepared.db, 'acme', many)
  const { bulk } = openQueue(t, prepared.settings)
  await bulk.pause()
  const [{ url }] = await Promise.all([prepared.startApi(), prepared.startWorker()])
  await until('the deletions wait', async () => (await bulk.getWaitingCount()) === 1)
  await writeRule(prepared.db, { tenant: 'acme', seconds: null })
  await bulk.resume()
  const { readVerdict } = await openOperator({ ...prepared, url })
  await until('the retention has ended', async () =>
    (await readVerdict()).some((text) => /^Retention: 5 of/.test(text)),
  )
  assert.equal((await names()).length, 13 - 5)
})

test.concurrent('a post that is accepted before a due thread is deleted is stored, and keeps a stored thread whole', async (t) => {
  const { names, ...prepared } = await prepare(t, { RETAIN_DAYS: '30' })
  const { db, key } = prepared
  const { queue, bulk } = openQueue(t, prepared.settings)
  await bulk.pause()
  const [{ url }] = await Promise.all([prepared.startApi(), prepared.startWorker()])
  await until('the deletions wait', async () => (await bulk.getWaitingCount()) === 1)
  await untilKeyIsKnown(url, key)
  const acme = createCaller({ url, key })
  const post = (externalId: string, headers = {}) =>
    acme.post(someThread({ externalId, title: 'New', quotes: quotesOf('new') }), headers)
  assert.equal(storedIn(await post('old')).source.outcome, 'updated')
  // This one is stored after the deletion of its thread.
  await queue.pause()
  const pending = await post('older', { prefer: 'wait=1' })
  await bulk.resume()
  await until('the deletions are stored', async () => (await names()).length === 2)
  await queue.resume()
  assert.equal(jobIn(await acme.get(jobPathIn(pending), { prefer: 'wait=30' })).state, 'completed')
  assert.deepEqual(await names(), ['old', 'older', 'young'])
  const quotes = await db.collection('quotes').find().toArray()
  assert.deepEqual(quotes.map((quote) => quote.externalId).sort(), ['new', 'new', 'old', 'old'])
  const sources = await db.collection('sources').find().toArray()
  assert.deepEqual(sources.map((source) => source.quoteCount).sort(), [1, 1, 2])
})
