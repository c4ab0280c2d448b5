import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'vitest'
import { assertStored } from '../support/assert-stored.ts'
import { statusesOf } from '../support/ledger.ts'
import { openQueue } from '../support/open-queue.ts'
import { postSteadily } from '../support/post-steadily.ts'
import { startSluice } from '../support/start-sluice.ts'
import { openTcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { preload } from './preloads/preload.ts'

/**
 * Longer than a lock (5 s), and than the time until another worker looks for expired ones (2 s):
 * nothing shorter takes the jobs away. But its command to MongoDB, sent some time before, must not
 * be older than 10 s when it goes on.
 */
const BLOCKED_MS = 8_000

test('a worker whose event loop blocks for longer than its locks loses its jobs, and they are stored once', async (t) => {
  const sluice = await startSluice(t, { workers: 0 })
  const { queue, drained } = openQueue(t, sluice.settings)
  const mongodb = await openTcpProxy(t, sluice.settings.MONGODB_URL ?? '')
  const blocked = await sluice.startWorker({ ...preload('block-loop'), MONGODB_URL: mongodb.url })

  // Without MongoDB it completes none of its jobs before its loop is blocked.
  mongodb.freeze()
  const load = postSteadily(t, sluice, { callers: 32, restMs: 0 })
  await until('the worker has active jobs', async () => (await queue.getActiveCount()) > 0)
  blocked.child.send(BLOCKED_MS)
  await once(blocked.child, 'message')
  mongodb.thaw()
  const other = await sluice.startWorker()
  // Only the jobs of the blocked worker matter from here until it goes on.
  const before = load.stop()
  const taken = await other.line(({ msg, attempt }) => msg === 'job.stored' && attempt === 2)
  await blocked.line(({ msg, jobId }) => msg === 'job.stored' && jobId === taken.jobId)
  const after = postSteadily(t, sluice, { callers: 32, restMs: 0 })
  await after.moreStored(30)
  const posted = [...(await before), ...(await after.stop())]
  await drained()
  assert.deepEqual(statusesOf(posted), [200])
  assert.equal(await queue.getFailedCount(), 0)
  await assertStored(sluice.db, posted)
})
