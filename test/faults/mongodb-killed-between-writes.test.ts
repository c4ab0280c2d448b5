import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { freePort } from '@sluice/servers'
import type { QuoteDocument, SourceDocument } from '@sluice/store'
import { requiredUrl } from '@sluice/test-support'
import type { Db } from 'mongodb'
import { afterAll, beforeAll, type TestContext, test } from 'vitest'
import { startSluice, type TestSluice } from '../start-sluice.ts'
import { assertNoHalf, assertStored } from './assert-stored.ts'
import { openQueue } from './open-queue.ts'
import { aThread, type Posted, postThread } from './post-thread.ts'
import { openPrivateServer, type PrivateServer } from './private-server.ts'
import { stopAfterWrites } from './stop-after-writes.ts'
import { createTcpProxy, OPEN_GATE } from './tcp-proxy.ts'

/** More than one command takes. */
const QUOTES = 260
const CHANGED = 10

let mongodb: PrivateServer
beforeAll(async () => {
  mongodb = await openPrivateServer('MongoDB', requiredUrl('REDIS_URL'))
})
afterAll(() => mongodb.end())

// Each kill takes a start of MongoDB and of a worker.
test('wherever MongoDB is killed between two writes of a batch, the worker finishes the batch when it is back', {
  timeout: 100_000,
}, async (t) => {
  const sluice = await startSluice(t, { workers: 0, mongodbUrl: mongodb.url })
  const { queue, bulk, drained } = openQueue(t, sluice.settings)
  const posted: Posted[] = []
  let killed = true
  let writes = 0
  for (; killed; writes++) {
    const externalId = randomUUID()
    const worker = await sluice.startWorker()
    posted.push(await postThread(sluice, aThread({ externalId, quotes: CHANGED })))
    worker.signal('SIGTERM')
    await worker.ended
    for (const thread of [aThread({ quotes: QUOTES }), aThread({ externalId, quotes: QUOTES, text: 'other words' })])
      posted.push(await postThread(sluice, thread, 'respond-async'))
    killed = await killAfter(t, sluice, writes)
    await drained(20_000)
    assertNoHalf(...(await documentsOf(sluice.db)))
  }
  await t.annotate(`killed before the first write, and after each of ${writes - 2}`)
  assert(writes >= 7, 'both sources, both kinds of quotes, in several commands')
  assert.deepEqual([await queue.getFailedCount(), await bulk.getFailedCount()], [0, 0])
  await assertStored(sluice.db, posted, { afterCrash: true })
})

/** Has a worker store what waits. Kills MongoDB after so many writes, and starts it again. Returns false if the worker needs no more than those. */
async function killAfter(t: TestContext, { startWorker, settings }: TestSluice, writes: number): Promise<boolean> {
  const { gate, reached } = stopAfterWrites(writes)
  let current = gate
  const url = new URL(settings.MONGODB_URL ?? '')
  const port = await freePort()
  const proxy = createTcpProxy(port, () => current())
  await proxy.open(Number(url.port))
  t.onTestFinished(proxy.shut)
  url.port = String(port)
  const worker = await startWorker({ MONGODB_URL: url.href })
  const killed = await Promise.race([
    reached.then(() => true),
    worker.line((line) => line.msg === 'job.stored').then(() => false),
  ])
  if (killed) {
    current = () => OPEN_GATE
    await mongodb.kill()
    await worker.line((line) => line.msg === 'store.lost')
    await mongodb.startAgain()
  }
  await worker.line((line) => line.msg === 'job.stored' && worker.log.filter((one) => one.msg === line.msg).length >= 2)
  assert.deepEqual(
    worker.log.filter((line) => line.msg === 'job.try_failed'),
    [],
  )
  worker.signal('SIGTERM')
  await worker.ended
  return killed
}

async function documentsOf(db: Db): Promise<[SourceDocument[], QuoteDocument[]]> {
  return [
    await db.collection<SourceDocument>('sources').find().toArray(),
    await db.collection<QuoteDocument>('quotes').find().toArray(),
  ]
}
