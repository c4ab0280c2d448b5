import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { test } from 'vitest'
import { assertStored } from '../support/assert-stored.ts'
import { statusesOf } from '../support/ledger.ts'
import { openQueue } from '../support/open-queue.ts'
import { postSteadily } from '../support/post-steadily.ts'
import { createRandom } from '../support/random.ts'
import { startSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'

const WORKERS = 3
const KILLS = 3
const POSTS = 750
/**
 * Most of the time goes into the take-over of what the killed workers had: seven seconds each, at
 * worst one after the other.
 */
const TIME_LIMIT_MS = 900_000

test(`${KILLS} kills of random workers at random moments of ${POSTS} posts lose nothing and store nothing twice`, {
  timeout: TIME_LIMIT_MS,
}, async (t) => {
  const seed = randomInt(2 ** 32)
  const random = createRandom(seed)
  await t.annotate(`seed ${seed}`)
  const sluice = await startSluice(t, { workers: WORKERS })
  const { queue, bulk, drained } = openQueue(t, sluice.settings)
  const load = postSteadily(t, sluice, {
    callers: 48,
    prefer: () => random.pick([undefined, 'respond-async']),
  })
  const alive = [...sluice.workers]
  for (let kill = 1; kill <= KILLS; kill++) {
    const due = Math.round((POSTS / (KILLS + 1)) * (kill - random.next()))
    await until(`${due} answers`, () => load.posted.length >= due, TIME_LIMIT_MS)
    const [killed] = alive.splice(Math.floor(random.next() * alive.length), 1)
    killed?.signal('SIGKILL')
    await killed?.ended
    alive.push(await sluice.startWorker())
  }
  await until(`${POSTS} answers`, () => load.posted.length >= POSTS, TIME_LIMIT_MS)
  const posted = await load.stop()
  await drained()
  assert.deepEqual(statusesOf(posted), [200, 202])
  assert.deepEqual([await queue.getFailedCount(), await bulk.getFailedCount()], [0, 0])
  await assertStored(sluice.db, posted, { afterCrash: true })
})
