import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import {
  mongoCommands,
  type QuoteDocument,
  type Runtime,
  repairSources,
  type SourceDocument,
  type StoreCommands,
  type WriterDocument,
} from '@sluice/store'
import { sourceIdOf } from '@sluice/store/ids'
import { testDatabase } from '@sluice/test-support'
import type { Db } from 'mongodb'
import { type TestContext, test } from 'vitest'
import { clockAhead } from '../laws/support/open-store.ts'
import { openTokens } from '../laws/support/open-tokens.ts'
import { storeOnce } from '../laws/support/store-all.ts'
import { assertConsistent } from '../support/assert-stored.ts'
import { openQueue } from '../support/open-queue.ts'
import { aThread, postThread } from '../support/post-thread.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { openTcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { stopAfterWrites } from './stop-after-writes.ts'

/** The next request counts the writer of a token this old as slow or dead, and sums the source. */
const STALE_MS = 10_000
/** A repair counts the writer of a token this old as dead. */
const EXPIRED_MS = 120_000

interface History {
  of: string
  /**
   * Quotes that the killed worker's request adds: for a new thread so many that they take more than
   * one write command.
   */
  added: number
  /** Quotes that are stored before, and that the request changes. */
  changed: number
}

const histories: History[] = [
  { of: 'a new thread', added: 260, changed: 0 },
  // A worker is started and killed for each of these quotes.
  { of: 'a stored thread', added: 2, changed: 2 },
]

for (const { of, added, changed } of histories) {
  test(`after a worker is killed between any two writes of ${of}, a repair or the next request makes the thread consistent`, async (t) => {
    const sluice = await startSluice(t, { workers: 0 })
    const commands = mongoCommands(sluice.db)
    const threads = await killAfterEach(t, sluice, async () => {
      const externalId = randomUUID()
      if (changed > 0) await storeNow(commands, aThread({ externalId, quotes: changed }))
      const posted = await postThread(
        sluice,
        aThread({ externalId, quotes: changed + added, text: 'other words' }),
        'respond-async',
      )
      assert.equal(posted.status, 202)
      return [externalId]
    })
    assert(threads.length >= 4, 'an opening, and several commands of quotes')
    const quotes = changed + added
    for (const [externalId = ''] of threads)
      await assertFinished(sluice.db, externalId, quotes, (quotes - 1) * 2 + 3)
  })
}

test('after a worker is killed between any two writes of deletions, a repair or the next request makes the threads consistent, and nothing comes back', async (t) => {
  const sluice = await startSluice(t, { workers: 0 })
  const commands = mongoCommands(sluice.db)
  const threads = await killAfterEach(t, sluice, async () => {
    const both = [randomUUID(), randomUUID()] as const
    for (const externalId of both) await storeNow(commands, aThread({ externalId }))
    await remove(sluice, both[0], '')
    await remove(sluice, both[1], '/quotes?externalId=q1')
    return both
  })
  assert(threads.length >= 4, 'a mark, an epoch, a removal and a commit')
  for (const [whole = '', part = ''] of threads) {
    await assertFinished(sluice.db, whole, 1, 3)
    await assertFinished(sluice.db, part, 2, 3 + 5)
  }
})

/**
 * Sends requests and kills their worker, after each number of writes, until they need no more
 * writes. Then lets another worker store what is left. Returns the threads of each kill.
 * @param send sends requests that wait, and returns the externalIds of their threads.
 */
async function killAfterEach(
  t: TestContext,
  sluice: TestSluice,
  send: () => Promise<readonly string[]>,
): Promise<(readonly string[])[]> {
  const { drained, extendLocks, expireLocks } = openQueue(t, sluice.settings)
  const threads: (readonly string[])[] = []
  for (let writes = 0; ; writes++) {
    const sent = await send()
    if (!(await killAfter(t, sluice, writes))) break
    await extendLocks()
    for (const externalId of sent) {
      await assertRepairable(t, sluice.db, externalId)
      const last = aThread({ externalId, quotes: 1, text: 'the last word' })
      await storeNow(mongoCommands(sluice.db), last, clockAhead(STALE_MS))
      await assertTotals(sluice.db, externalId)
    }
    threads.push(sent)
  }
  await t.annotate(`killed after each of ${threads.length - 1} writes, and before the first`)
  await expireLocks()
  await sluice.startWorker()
  await drained()
  return threads
}

/** Deletes a source, or what it has at a path, without waiting for it. */
async function remove({ url, key }: TestSluice, externalId: string, path: string): Promise<void> {
  const headers = { 'x-api-key': key, prefer: 'respond-async' }
  const { status } = await fetch(`${url}/sources/${idOf(externalId)}${path}`, {
    method: 'DELETE',
    headers,
  })
  assert.equal(status, 202)
}

/**
 * Starts a worker and kills it after so many writes. Returns false if its job needs no more than
 * those.
 */
async function killAfter(
  t: TestContext,
  { startWorker, settings }: TestSluice,
  writes: number,
): Promise<boolean> {
  const { gate, reached } = stopAfterWrites(writes)
  const { url } = await openTcpProxy(t, settings.MONGODB_URL ?? '', gate)
  const worker = await startWorker({ MONGODB_URL: url })
  const killed = await Promise.race([
    reached.then(() => true),
    worker.line((line) => line.msg === 'job.stored').then(() => false),
  ])
  worker.signal('SIGKILL')
  await worker.ended
  return killed
}

/** Stores a new request, with the newest stamp. */
async function storeNow(
  commands: StoreCommands,
  { quotes, ...source }: ReturnType<typeof aThread>,
  runtime?: Runtime,
): Promise<void> {
  const request = {
    id: randomUUID(),
    tenant: 'acme',
    stamp: Date.now() * 1000,
    redelivered: false,
    thread: { source, quotes },
  }
  await storeOnce(commands, [request], runtime)
}

/** Repairs a copy, so that the thread itself stays as the killed worker left it. */
async function assertRepairable(t: TestContext, db: Db, externalId: string): Promise<void> {
  const copy = await testDatabase(t)
  const { sources, quotes } = await threadOf(db, externalId)
  const writers = await db.collection<WriterDocument>('writers').find().toArray()
  if (writers.length > 0) await copy.collection<WriterDocument>('writers').insertMany(writers)
  if (sources.length > 0) await copy.collection<SourceDocument>('sources').insertMany(sources)
  if (quotes.length > 0) await copy.collection<QuoteDocument>('quotes').insertMany(quotes)
  await repairSources(mongoCommands(copy), { repair: true }, clockAhead(EXPIRED_MS))
  const { sources: repaired } = await threadOf(copy, externalId)
  assert.deepEqual(await openTokens(copy, ...repaired), [], 'a token is open')
  await assertTotals(copy, externalId)
}

async function assertTotals(db: Db, externalId: string): Promise<SourceDocument | undefined> {
  const { sources, quotes } = await threadOf(db, externalId)
  assertConsistent(sources, quotes)
  return sources[0]
}

/**
 * Another worker ran the killed worker's job after a newer request: all quotes are stored, and the
 * fields of the newer request are kept.
 */
async function assertFinished(
  db: Db,
  externalId: string,
  quotes: number,
  words: number,
): Promise<void> {
  // A worker closes the tokens of its last batch after the jobs are done.
  await until('no token to be open', async () => {
    const { sources } = await threadOf(db, externalId)
    return (await openTokens(db, ...sources)).length === 0
  })
  const source = await assertTotals(db, externalId)
  assert.deepEqual([source?.quoteCount, source?.wordCount], [quotes, words])
}

const idOf = (externalId: string) => sourceIdOf('acme', { service: 'custom', externalId })

async function threadOf(db: Db, externalId: string) {
  const _id = idOf(externalId)
  return {
    sources: await db.collection<SourceDocument>('sources').find({ _id }).toArray(),
    quotes: await db.collection<QuoteDocument>('quotes').find({ sourceId: _id }).toArray(),
  }
}
