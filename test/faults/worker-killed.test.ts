import assert from 'node:assert/strict'
import { test } from 'vitest'
import { assertStored } from '../support/assert-stored.ts'
import { statusesOf } from '../support/ledger.ts'
import { openQueue } from '../support/open-queue.ts'
import { postSteadily } from '../support/post-steadily.ts'
import { startSluice } from '../support/start-sluice.ts'
import { BUSY_MS, until } from '../support/until.ts'
import { untilStoppedWith } from '../support/until-stopped-with.ts'

/** How soon others take over the jobs of a killed worker, in ms. */
const TAKEN_OVER_MS = 10_000 + BUSY_MS

test('another worker runs the jobs of a killed worker; nothing is lost or stored twice', async (t) => {
  const sluice = await startSluice(t, { workers: 1 })
  const { queue, drained } = openQueue(t, sluice.settings)
  const load = postSteadily(t, sluice)
  await load.moreStored(30)

  const [killed] = sluice.workers
  assert(killed)
  await untilStoppedWith(killed, 1, () => queue.getActiveCount())
  const orphans = await queue.getActive()
  await sluice.startWorker()
  killed.signal('SIGKILL')
  await killed.ended
  const killedAt = performance.now()
  await until(
    'the killed worker\u2019s jobs are done',
    async () => {
      const active = new Set((await queue.getActive()).map((job) => job.id))
      return orphans.every((job) => !active.has(job.id))
    },
    TAKEN_OVER_MS,
  )
  await t.annotate(
    `${orphans.length} jobs were active; the last one was done after ${Math.round(performance.now() - killedAt)} ms`,
  )

  await load.moreStored(16)
  const posted = await load.stop()
  await drained()
  assert.deepEqual(statusesOf(posted), [200])
  assert(
    posted.some(({ ms }) => ms > 2_000),
    'no caller waited for a job of the killed worker',
  )
  await assertStored(sluice.db, posted, { afterCrash: true })
})
