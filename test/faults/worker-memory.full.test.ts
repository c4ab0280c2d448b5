import assert from 'node:assert/strict'
import { connectRetrying } from '@sluice/process/redis'
import { createEnqueuer, newJobId, queueKeys } from '@sluice/queue'
import { mongoCommands, type PostRequest } from '@sluice/store'
import { UNBOUNDED } from '@sluice/test-support'
import { type TestContext, test } from 'vitest'
import { storeOnce } from '../laws/support/store-all.ts'
import { openQueue } from '../support/open-queue.ts'
import { aThread, postThread } from '../support/post-thread.ts'
import { residentBytes } from '../support/resident-bytes.ts'
import { startSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'

/** The longest texts that the API accepts. */
const TEXT = 100_000
const STORED = 1_200
const AT_ONCE = 60
/** Less than the stored texts take. */
const HEAP_MIB = 96

// Storing 120 MB takes its time.
test('a worker does not hold the stored texts of all quotes that a request names', async (t) => {
  const sluice = await startSluice(t, { workers: 0, settings: { WAIT_SECONDS: '30' } })
  const worker = await sluice.startWorker({ NODE_OPTIONS: `--max-old-space-size=${HEAP_MIB}` })
  const { drained } = openQueue(t, sluice.settings)
  const thread = aThread({ quotes: STORED, text: 'short' })
  await storeLongTexts(mongoCommands(sluice.db), thread)

  const answered = await postThread(sluice, thread)
  assert.equal(answered.status, 200)
  await drained()
  assert.equal(worker.child.exitCode, null)
  const sources = await sluice.db
    .collection('sources')
    .find({ externalId: thread.externalId })
    .toArray()
  assert.deepEqual([sources[0]?.quoteCount, sources[0]?.wordCount], [STORED, STORED])
})

/**
 * The bound that docs/operate/mongodb.md states: the heap of a worker in MiB, given its
 * `MAX_BYTES_IN_HAND` in MiB.
 */
const heapFor = (inHand: number) => 128 + 4 * inHand
const IN_HAND_MIB = 16

const JOBS = 32

test('a worker whose heap has the stated bound stores jobs of 10 MiB, however many wait', {
  timeout: 400_000,
}, async (t) => {
  const sluice = await startSluice(t, { workers: 0 })
  const { drained } = openQueue(t, sluice.settings)
  await enqueueLarge(t, sluice.settings)
  const worker = await sluice.startWorker({
    MAX_BYTES_IN_HAND: String(IN_HAND_MIB * 1024 * 1024),
    NODE_OPTIONS: `--max-old-space-size=${heapFor(IN_HAND_MIB)}`,
  })
  await Promise.race([drained(350_000), worker.ended])
  const [peak, heap] = [
    await residentBytes(worker.pid, 'VmHWM').catch(() => 0),
    heapFor(IN_HAND_MIB),
  ]
  await t.annotate(
    `${Math.round(peak / 1024 / 1024)} MiB resident at most, with a heap of ${heap} MiB`,
  )
  assert.equal(worker.child.exitCode, null)
  assert.equal(
    await sluice.db.collection('sources').countDocuments({ quoteCount: LARGE_QUOTES }),
    JOBS,
  )
})

/**
 * Fills three quarters of a queue with interactive jobs and the rest with bulk jobs. The API would
 * refuse so many large bodies at once.
 */
async function enqueueLarge(
  t: TestContext,
  { REDIS_URL = '', QUEUE = '' }: Record<string, string>,
): Promise<void> {
  const redis = connectRetrying({ redisUrl: REDIS_URL, queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  await until('Redis', () => redis.status === 'ready')
  const { enqueue } = createEnqueuer(queueKeys(QUEUE), redis, UNBOUNDED)
  for (let at = 0; at < JOBS; at++) {
    const { quotes, ...source } = aThread({ quotes: LARGE_QUOTES, text: LARGE_TEXT })
    const job = { tenant: 'acme', requestId: 'r', retained: false, threads: [{ source, quotes }] }
    // On a slow machine Redis may take longer for 10 MiB than the time limit. Each try stores the
    // same thread.
    const lane = at % 4 === 0 ? 'bulk' : 'interactive'
    await until('a job is enqueued', () =>
      enqueue(newJobId(), lane, job).then(
        () => true,
        () => false,
      ),
    )
  }
}

/**
 * A thread of these fills the largest body. One character of each text needs two bytes in memory,
 * and so all of them do.
 */
const LARGE_TEXT = `ł${'x'.repeat(TEXT - 1)}`
const LARGE_QUOTES = 100

/** Stores long texts for the thread's quotes, by requests that are older than any other. */
async function storeLongTexts(
  commands: Parameters<typeof storeOnce>[0],
  { quotes, ...source }: ReturnType<typeof aThread>,
): Promise<void> {
  for (let from = 0; from < quotes.length; from += AT_ONCE) {
    const request: PostRequest = {
      id: `long-${from}`,
      tenant: 'acme',
      stamp: from + 1,
      redelivered: false,
      thread: {
        source,
        quotes: quotes
          .slice(from, from + AT_ONCE)
          .map((quote) => ({ ...quote, text: 'x'.repeat(TEXT) })),
      },
    }
    await storeOnce(commands, [request])
  }
}
