import assert from 'node:assert/strict'
import { test } from 'vitest'
import { assertStored } from '../support/assert-stored.ts'
import { statusesOf } from '../support/ledger.ts'
import { openQueue } from '../support/open-queue.ts'
import { postSteadily } from '../support/post-steadily.ts'
import { startSluice } from '../support/start-sluice.ts'
import { untilStoppedWith } from '../support/until-stopped-with.ts'

/** The fewest jobs that the worker has locked when it is told to stop. */
const ACTIVE = 50

test(`a stopping worker with ${ACTIVE} active jobs finishes them and exits 0, and none stalls`, async (t) => {
  const sluice = await startSluice(t)
  const { queue, drained } = openQueue(t, sluice.settings)
  const load = postSteadily(t, sluice, { callers: 2 * ACTIVE, restMs: 0 })
  await load.moreStored(30)

  const [stopped] = sluice.workers
  assert(stopped)
  await untilStoppedWith(stopped, ACTIVE, () => queue.getActiveCount())
  stopped.signal('SIGTERM')
  stopped.signal('SIGCONT')
  // If it took longer than its grace time, it would exit 1.
  assert.deepEqual(await stopped.ended, { code: 0, signal: null })

  const other = await sluice.startWorker()
  await load.moreStored(2 * ACTIVE)
  const posted = await load.stop()
  await drained()
  assert.deepEqual(statusesOf(posted), [200])
  const redelivered = [...stopped.log, ...other.log].filter(({ attempt }) => typeof attempt === 'number' && attempt > 1)
  assert.deepEqual(redelivered, [], 'a job stalled')
  await assertStored(sluice.db, posted)
})
