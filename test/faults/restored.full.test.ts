import assert from 'node:assert/strict'
import type { QuoteDocument, SourceDocument } from '@sluice/store'
import { requiredUrl } from '@sluice/test-support'
import { afterAll, beforeAll, test } from 'vitest'
import { assertStored } from '../support/assert-stored.ts'
import { openQueue } from '../support/open-queue.ts'
import { aThread, type Posted, postThread } from '../support/post-thread.ts'
import { openPrivateServer, type PrivateServer } from '../support/private-server.ts'
import { runSluice } from '../support/run-sluice.ts'
import { startSluice, type TestSluice, untilKeyIsKnown } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'

let mongodb: PrivateServer
beforeAll(async () => {
  mongodb = await openPrivateServer('MongoDB', requiredUrl('REDIS_URL'))
})
afterAll(() => mongodb.end())

type Thread = ReturnType<typeof aThread>

/** Posts threads in this order, each with its own idempotency key; another time without one. */
async function postAll(
  sluice: TestSluice,
  threads: readonly Thread[],
  hasKey = true,
): Promise<Posted[]> {
  const posted: Posted[] = []
  const keyOf = ({ title }: Thread) => (hasKey ? title.replace(' ', '-') : undefined)
  for (const thread of threads)
    posted.push(await postThread(sluice, thread, undefined, keyOf(thread)))
  assert.deepEqual([...new Set(posted.map(({ status }) => status))], [200])
  return posted
}

async function stopAll({ api, workers }: TestSluice): Promise<void> {
  for (const process of [api, ...workers]) process.signal('SIGTERM')
  for (const process of [api, ...workers])
    assert.deepEqual(await process.ended, { code: 0, signal: null })
}

/** Starts an API and a worker on the same servers again. */
async function startAgain(sluice: TestSluice): Promise<TestSluice> {
  const [{ api, url }, worker] = await Promise.all([sluice.startApi(), sluice.startWorker()])
  await untilKeyIsKnown(url, sluice.key)
  return { ...sluice, api, url, workers: [worker] }
}

const someThreads = (number: number) => Array.from({ length: number }, () => aThread())
/** The same thread with a new title and two more quotes. */
const appended = ({ externalId }: Thread) => aThread({ externalId, quotes: 2, from: 3 })
const outcomesOf = (posted: readonly Posted[]) =>
  posted.map(({ body }) =>
    typeof body.source === 'object' ? Object(body.source).outcome : undefined,
  )

test('after MongoDB was restored to an earlier moment and doctor --after-restore, posting everything again makes every answer true', {
  timeout: 120_000,
}, async (t) => {
  const before = await startSluice(t, { mongodbUrl: mongodb.url })
  const [kept, lost] = [someThreads(10), someThreads(10)]
  const all = [...kept, ...kept.map(appended), ...lost]
  await postAll(before, kept)
  await mongodb.keepCopy()
  await until(
    'a worker that stores again',
    async () => (await postThread(before, aThread())).status === 200,
  )
  await postAll(before, all.slice(kept.length))
  const accepted = await postThread(before, aThread(), 'respond-async')
  const imported = await fetch(`${before.url}/sources:batch`, {
    method: 'POST',
    headers: {
      'x-api-key': before.key,
      'content-type': 'application/x-ndjson',
      prefer: 'respond-async',
    },
    body: JSON.stringify(aThread()),
  })
  assert.equal(imported.status, 202)
  await openQueue(t, before.settings).drained()
  const refused = await runSluice(before, 'doctor', '--after-restore')
  assert.match(
    refused.stderr,
    /^error: Nothing was removed, because APIs or workers run.*: api .*, worker /,
  )
  assert.equal(refused.code, 2)

  await stopAll(before)
  await mongodb.restoreCopy()
  const ran = await runSluice(before, 'doctor', '--after-restore')
  assert.match(ran.stdout, /^Removed: the digests of 10 sources, and [1-9]\d+ keys of Redis /)

  const sluice = await startAgain(before)
  for (const { headers } of [accepted, imported]) {
    const gone = await fetch(sluice.url + headers.get('location'), {
      headers: { 'x-api-key': sluice.key },
    })
    assert.equal(gone.status, 404)
  }
  const posted = await postAll(sluice, all)
  assert.deepEqual([...new Set(outcomesOf(posted.slice(-10)))], ['created'])
  // Writers that the backup caught in the middle never finish.
  await assertStored(sluice.db, posted, { afterCrash: true })
})

test('a MongoDB backup whose quotes are older than its sources is healed by doctor --after-restore and posting again', {
  timeout: 120_000,
}, async (t) => {
  const before = await startSluice(t)
  const quotes = before.db.collection<QuoteDocument>('quotes')
  const first = someThreads(5)
  // Other words, and as many of them: the totals stay equal.
  const edited = first.map(({ externalId }) =>
    aThread({ externalId, text: 'five other words stand here' }),
  )
  await postAll(before, first)
  const older = await quotes.find().toArray()
  const later = [...edited.slice(0, 3), ...first.slice(3).map(appended)]
  await postAll(before, later)
  await openQueue(t, before.settings).drained()
  await stopAll(before)
  await quotes.deleteMany({})
  await quotes.insertMany(older)
  const ran = await runSluice(before, 'doctor', '--after-restore', '--repair')
  assert.match(ran.stdout, /^Removed: the digests of 3 sources, /)
  assert.match(ran.stdout, /^Wrong: 2$/m)

  const sluice = await startAgain(before)
  const posted = await postAll(sluice, [...later, ...edited], false)
  assert.deepEqual([...new Set(outcomesOf(posted.slice(0, 5)))], ['updated'])
  await assertStored(sluice.db, posted)
  const texts = await quotes.distinct('text', { externalId: { $in: ['q0', 'q1', 'q2'] } })
  assert.deepEqual(texts, ['five other words stand here'])
})

test('an old copy of Redis is a prefix of history: its jobs run again, and change nothing', {
  timeout: 120_000,
}, async (t) => {
  const redis = await openPrivateServer('Redis', requiredUrl('MONGODB_URL'))
  t.onTestFinished(redis.end)
  const before = await startSluice(t, { redisUrl: redis.url })
  const view = openQueue(t, before.settings)
  const threads = someThreads(10)
  const posted = await postAll(before, threads)
  const [worker] = before.workers
  worker?.signal('SIGTERM')
  await worker?.ended
  for (const { externalId } of threads)
    posted.push(await postThread(before, aThread({ externalId }), 'respond-async'))
  await redis.keepCopy()
  const workers = [await before.startWorker()]
  await view.drained()
  await until('an API that accepts again', async () => {
    posted.push(await postThread(before, aThread()))
    return posted.at(-1)?.status === 200
  })
  posted.push(...(await postAll(before, threads.slice(5).map(appended))))
  await view.drained()
  await stopAll({ ...before, workers })
  const titles = () => before.db.collection<SourceDocument>('sources').distinct('title')
  const stored = await titles()

  await redis.restoreCopy()
  await until('the jobs of the copy', async () => (await view.left()) === threads.length)
  const sluice = await startAgain(before)
  await view.drained()
  assert.deepEqual(await titles(), stored)
  posted.push(...(await postAll(sluice, someThreads(5))))
  await assertStored(sluice.db, posted)
  const { stdout } = await runSluice(sluice, 'doctor')
  assert.match(stdout, /^ {2}ok {5}load of the queue: agrees with its jobs$/m)
  assert.equal(await view.left(), 0)
})
