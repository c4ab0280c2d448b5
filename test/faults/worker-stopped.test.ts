import assert from 'node:assert/strict'
import { test } from 'vitest'
import { assertStored } from '../support/assert-stored.ts'
import { statusesOf } from '../support/ledger.ts'
import { openQueue } from '../support/open-queue.ts'
import { postSteadily } from '../support/post-steadily.ts'
import { aThread, postThread } from '../support/post-thread.ts'
import { startSluice } from '../support/start-sluice.ts'
import { openTcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { untilStoppedWith } from '../support/until-stopped-with.ts'

/** The fewest jobs that the worker has locked when it is told to stop. */
const ACTIVE = 50

test.concurrent(`a stopping worker with ${ACTIVE} active jobs finishes them and exits 0, and none stalls`, async (t) => {
  const sluice = await startSluice(t)
  const [stopped = assert.fail()] = sluice.workers
  const { queue, drained } = openQueue(t, sluice.settings)
  const load = postSteadily(t, sluice, { callers: 2 * ACTIVE, restMs: 0 })
  await load.moreStored(30)

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
  const redelivered = [...stopped.log, ...other.log].filter(
    ({ attempt }) => typeof attempt === 'number' && attempt > 1,
  )
  assert.deepEqual(redelivered, [], 'a job stalled')
  await assertStored(sluice.db, posted)
})

test.concurrent('a worker leaves the jobs that it could not finish in its grace time to other workers', async (t) => {
  const sluice = await startSluice(t, { workers: 0 })
  const { queue, drained, expireLocks } = openQueue(t, sluice.settings)
  const mongodb = await openTcpProxy(t, sluice.settings.MONGODB_URL ?? '')
  const stopped = await sluice.startWorker({
    MONGODB_URL: mongodb.url,
    SHUTDOWN_GRACE_SECONDS: '1',
  })
  mongodb.freeze()
  const posts = Array.from({ length: 5 }, () => postThread(sluice, aThread()))
  await until('a job to be locked', async () => (await queue.getActiveCount()) > 0)
  stopped.signal('SIGTERM')
  assert.deepEqual(await stopped.ended, { code: 0, signal: null })
  assert.notEqual(await queue.getActiveCount(), 0)

  await expireLocks()
  await sluice.startWorker()
  const posted = await Promise.all(posts)
  await drained()
  assert.deepEqual(statusesOf(posted), [200])
  await assertStored(sluice.db, posted, { afterCrash: true })
})

test.concurrent('a worker that stops while MongoDB is slow settles its last batches', async (t) => {
  const sluice = await startSluice(t, { workers: 0 })
  const mongodb = await openTcpProxy(t, sluice.settings.MONGODB_URL ?? '')
  const stopped = await sluice.startWorker({ MONGODB_URL: mongodb.url })
  mongodb.slow(400)
  const posted = [await postThread(sluice, aThread())]
  stopped.signal('SIGTERM')
  assert.deepEqual(await stopped.ended, { code: 0, signal: null })
  await assertStored(sluice.db, posted)
})
