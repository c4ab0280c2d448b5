import assert from 'node:assert/strict'
import { test } from 'vitest'
import { startSluice } from '../start-sluice.ts'
import { assertStored } from './assert-stored.ts'
import { openQueue } from './open-queue.ts'
import { postSteadily } from './post-steadily.ts'

const GRACE_S = 5
/** Longer than the time after which an abandoned job is noticed, in ms. */
const STALLED_SEEN_MS = 8_000

test('a stopping worker finishes its locked jobs and exits 0', {
  timeout: 40_000,
}, async (t) => {
  const sluice = await startSluice(t, { workers: 2, settings: { SHUTDOWN_GRACE_SECONDS: String(GRACE_S) } })
  const { drained } = openQueue(t, sluice.settings)
  const load = postSteadily(t, sluice)
  await load.moreStored(30, 10_000)

  const [stopped, other] = sluice.workers
  assert(stopped && other)
  await stopped.line((line) => line.msg === 'job.stored')
  const signalledAt = performance.now()
  stopped.signal('SIGTERM')
  assert.deepEqual(await stopped.ended, { code: 0, signal: null })
  assert(performance.now() - signalledAt < GRACE_S * 1000, 'it took longer than its grace time')

  await load.moreStored(16, STALLED_SEEN_MS)
  const posted = await load.stop()
  await drained(STALLED_SEEN_MS)
  assert.deepEqual([...new Set(posted.map(({ status }) => status))], [200])
  const redelivered = [...stopped.log, ...other.log].filter(({ attempt }) => typeof attempt === 'number' && attempt > 1)
  assert.deepEqual(redelivered, [], 'a job stalled')
  await assertStored(sluice.db, posted)
})
