import assert from 'node:assert/strict'
import { startProcess, testQueueName } from '@sluice/test-support'
import type { Db } from 'mongodb'
import { describe, type TestContext, test } from 'vitest'
import { runSluice } from '../support/run-sluice.ts'
import { type PreparedSluice, prepareSluice, untilKeyIsKnown } from '../support/start-sluice.ts'
import { createCaller } from './support/caller.ts'
import { storedIn } from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'

type ById = { _id: string }

describe('the layout number of the documents in MongoDB', () => {
  const numbersIn = (db: Db) => db.collection<ById>('layout').find({ _id: 'documents' }).toArray()

  async function storeOne(sluice: PreparedSluice, more = {}): Promise<void> {
    const [{ url, api }, worker] = await Promise.all([
      sluice.startApi(more),
      sluice.startWorker(more),
    ])
    await untilKeyIsKnown(url, sluice.key)
    storedIn(await createCaller({ url, key: sluice.key }).post(someThread({ externalId: 'same' })))
    for (const process of [api, worker]) process.signal('SIGTERM')
    await Promise.all([api.ended, worker.ended])
  }

  test('is written before the first thread, also into a database of this layout without it', async (t) => {
    const sluice = await prepareSluice(t)
    const number = { _id: 'documents', number: 1 }
    await storeOne(sluice)
    assert.deepEqual(await numbersIn(sluice.db), [number])
    await sluice.db.collection('layout').drop()
    // A queue that feeds no store yet, as before an upgrade.
    await storeOne(sluice, { QUEUE: testQueueName() })
    assert.deepEqual(await numbersIn(sluice.db), [number])
    assert.equal(await sluice.db.collection('sources').countDocuments(), 1)
  })

  test('keeps API and workers from another layout, and doctor names it', async (t) => {
    const sluice = await prepareSluice(t)
    await sluice.db.collection<ById>('layout').insertOne(Object({ _id: 'documents', number: 2 }))
    const found = /have layout 2; this release of Sluice has layout 1/
    for (const app of ['api', 'worker']) await assertRefused(t, sluice, app, found)
    const { stdout, code } = await runSluice(sluice, 'doctor')
    assert.equal(code, 1)
    assert.match(stdout, new RegExp(`FAULT .*${found.source}.*MONGODB_URL`))
  })

  async function assertRefused(
    t: TestContext,
    sluice: PreparedSluice,
    app: string,
    found: RegExp,
  ): Promise<void> {
    const process = startProcess(t, `apps/${app}/src/main.ts`, sluice.settings)
    const { err } = await process.line(({ msg }) => msg === 'process.start_failed')
    assert.match(Object(err).message, found)
    assert.match(Object(err).message, /name an empty database in MONGODB_URL/)
    assert.deepEqual(await process.ended, { code: 1, signal: null })
  }
})
