import assert from 'node:assert/strict'
import { mongoCommands, type StoreRequest } from '@sluice/store'
import { test } from 'vitest'
import { storeOnce } from '../laws/support/store-all.ts'
import { startSluice } from '../start-sluice.ts'
import { openQueue } from './open-queue.ts'
import { aThread, postThread } from './post-thread.ts'

/** The longest texts that the API accepts. */
const TEXT = 100_000
const STORED = 1_200
const AT_ONCE = 60
/** Less than the stored texts take. */
const HEAP_MIB = 96

// Storing 120 MB takes its time.
test('a worker does not hold the stored texts of all quotes that a request names', {
  timeout: 90_000,
}, async (t) => {
  const sluice = await startSluice(t, {
    settings: { NODE_OPTIONS: `--max-old-space-size=${HEAP_MIB}`, WAIT_SECONDS: '30' },
  })
  const { drained } = openQueue(t, sluice.settings)
  const thread = aThread({ quotes: STORED, text: 'short' })
  await storeLongTexts(mongoCommands(sluice.db), thread)

  const answered = await postThread(sluice, thread)
  assert.equal(answered.status, 200)
  await drained(5_000)
  assert.equal(sluice.workers[0]?.child.exitCode, null)
  const sources = await sluice.db.collection('sources').find({ externalId: thread.externalId }).toArray()
  assert.deepEqual([sources[0]?.quoteCount, sources[0]?.wordCount], [STORED, STORED])
})

/** Stores long texts for the thread's quotes, by requests that are older than any other. */
async function storeLongTexts(
  commands: Parameters<typeof storeOnce>[0],
  { quotes, ...source }: ReturnType<typeof aThread>,
): Promise<void> {
  for (let from = 0; from < quotes.length; from += AT_ONCE) {
    const request: StoreRequest = {
      id: `long-${from}`,
      tenant: 'acme',
      stamp: from + 1,
      redelivered: false,
      thread: {
        source,
        quotes: quotes.slice(from, from + AT_ONCE).map((quote) => ({ ...quote, text: 'x'.repeat(TEXT) })),
      },
    }
    await storeOnce(commands, [request])
  }
}
