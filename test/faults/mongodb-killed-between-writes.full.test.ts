import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { QuoteDocument, SourceDocument } from '@sluice/store'
import { requiredUrl, type StartedProcess } from '@sluice/test-support'
import type { Db } from 'mongodb'
import { afterAll, beforeAll, type TestContext, test } from 'vitest'
import { assertConsistent, assertStored } from '../support/assert-stored.ts'
import { openQueue } from '../support/open-queue.ts'
import { aThread, type Posted, postThread } from '../support/post-thread.ts'
import { openPrivateServer, type PrivateServer } from '../support/private-server.ts'
import { startSluice } from '../support/start-sluice.ts'
import { type Gate, OPEN_GATE, openTcpProxy } from '../support/tcp-proxy.ts'
import { stopAfterWrites, type WriteStop } from './stop-after-writes.ts'

/** More than one command takes. */
const QUOTES = 260
const CHANGED = 10
const EXPECTED_WRITES = 5

let mongodb: PrivateServer
beforeAll(async () => {
  mongodb = await openPrivateServer('MongoDB', requiredUrl('REDIS_URL'))
})
afterAll(() => mongodb.end())

// Each kill takes a start of MongoDB.
test('wherever MongoDB is killed between two writes of a batch, the worker finishes the batch when it is back', {
  timeout: 300_000,
}, async (t) => {
  const { url, arm, disarm } = await openStoppableProxy(t, mongodb.url)
  const sluice = await startSluice(t, { workers: 0, mongodbUrl: mongodb.url })
  const { queue, bulk, drained } = openQueue(t, sluice.settings)
  url.pathname = `/${sluice.db.databaseName}`
  const worker = await sluice.startWorker({ MONGODB_URL: url.href })
  const posted: Posted[] = []
  let writes = 0
  for (let killed = true; killed; writes += 1) {
    const externalId = randomUUID()
    posted.push(await postThread(sluice, aThread({ externalId, quotes: CHANGED })))
    const { reached } = arm(writes)
    const added = [
      aThread({ quotes: QUOTES }),
      aThread({ externalId, quotes: CHANGED, text: 'other words' }),
    ]
    posted.push(
      ...(await Promise.all(added.map((thread) => postThread(sluice, thread, 'respond-async')))),
    )
    const done = drained()
    killed = await Promise.race([reached.then(() => true), done.then(() => false)])
    const lost = nextLine(worker, 'store.lost')
    disarm()
    if (killed) {
      await mongodb.kill()
      // The last write raises the watermark, after the answers: then no batch is lost.
      await Promise.race([lost, done])
      await mongodb.startAgain()
    }
    await done
    assertConsistent(...(await documentsOf(sluice.db)))
  }
  await t.annotate(`killed before or after write 0 to ${writes - 2}, in steps of ${1}`)
  assert(writes > EXPECTED_WRITES, 'both sources, both kinds of quotes, in several commands')
  assert.deepEqual([await queue.getFailedCount(), await bulk.getFailedCount()], [0, 0])
  assert.deepEqual(
    worker.log.filter(({ msg }) => msg === 'job.try_failed'),
    [],
  )
  await assertStored(sluice.db, posted, { afterCrash: true })
})

/** A proxy that lets a number of writes through once it is armed. */
async function openStoppableProxy(t: TestContext, server: string) {
  let current: Pick<WriteStop, 'gate'> = { gate: () => OPEN_GATE }
  /** Connections outlive an arming, so each asks for the gate of the current one. */
  function gateOfConnection(): Gate {
    let made = { by: current, gate: current.gate() }
    const gate = () => {
      if (made.by !== current) made = { by: current, gate: current.gate() }
      return made.gate
    }
    return {
      toServer: (chunk) => gate().toServer(chunk),
      toClient: (chunk) => gate().toClient(chunk),
    }
  }
  const { url } = await openTcpProxy(t, server, gateOfConnection)
  return {
    url: new URL(url),
    arm(writes: number): WriteStop {
      const stop = stopAfterWrites(writes)
      current = stop
      return stop
    },
    disarm() {
      current = { gate: () => OPEN_GATE }
    },
  }
}

/**
 * Resolves with the next such line, whatever the log holds already, or when the process has ended.
 */
function nextLine({ log, line }: StartedProcess, msg: string): Promise<unknown> {
  const from = log.length
  return line((one) => one.msg === msg && log.indexOf(one) >= from).catch(() => {})
}

async function documentsOf(db: Db): Promise<[SourceDocument[], QuoteDocument[]]> {
  return [
    await db.collection<SourceDocument>('sources').find().toArray(),
    await db.collection<QuoteDocument>('quotes').find().toArray(),
  ]
}
