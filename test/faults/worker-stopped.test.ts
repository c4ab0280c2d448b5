import assert from 'node:assert/strict'
import { beforeSuite } from '@sluice/test-support'
import { type TestContext, test } from 'vitest'
import { assertStored } from '../support/assert-stored.ts'
import { statusesOf } from '../support/ledger.ts'
import { openQueue } from '../support/open-queue.ts'
import { postSteadily } from '../support/post-steadily.ts'
import { aThread, type Posted, postThread } from '../support/post-thread.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { openTcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { untilStoppedWith } from '../support/until-stopped-with.ts'

/** The fewest jobs that the worker has locked when it is told to stop. */
const ACTIVE = 50

let sluice: TestSluice
/** What all tests have posted. */
const posted: Posted[] = []
beforeSuite(async (t) => {
  sluice = await startSluice(t, { workers: 0 })
})

/** Starts a worker that ends with its test. */
async function startWorker(t: TestContext, settings?: Record<string, string>) {
  const worker = await sluice.startWorker(settings)
  t.onTestFinished(async () => {
    worker.signal('SIGKILL')
    await worker.ended
  })
  return worker
}

test(`a stopping worker with ${ACTIVE} active jobs finishes them and exits 0, and none stalls`, async (t) => {
  const stopped = await startWorker(t)
  const { queue, drained } = openQueue(t, sluice.settings)
  const load = postSteadily(t, sluice, { callers: 2 * ACTIVE, restMs: 0 })
  await load.moreStored(30)

  await untilStoppedWith(stopped, ACTIVE, () => queue.getActiveCount())
  stopped.signal('SIGTERM')
  stopped.signal('SIGCONT')
  // If it took longer than its grace time, it would exit 1.
  assert.deepEqual(await stopped.ended, { code: 0, signal: null })

  const other = await startWorker(t)
  await load.moreStored(2 * ACTIVE)
  posted.push(...(await load.stop()))
  await drained()
  assert.deepEqual(statusesOf(posted), [200])
  const redelivered = [...stopped.log, ...other.log].filter(
    ({ attempt }) => typeof attempt === 'number' && attempt > 1,
  )
  assert.deepEqual(redelivered, [], 'a job stalled')
  await assertStored(sluice.db, posted)
})

test('a worker leaves the jobs that it could not finish in its grace time to other workers', async (t) => {
  const { queue, drained, expireLocks } = openQueue(t, sluice.settings)
  const mongodb = await openTcpProxy(t, sluice.settings.MONGODB_URL ?? '')
  const stopped = await startWorker(t, {
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
  await startWorker(t)
  posted.push(...(await Promise.all(posts)))
  await drained()
  assert.deepEqual(statusesOf(posted), [200])
  await assertStored(sluice.db, posted, { afterCrash: true })
})

test('a worker that stops while MongoDB is slow settles its last batches', async (t) => {
  const mongodb = await openTcpProxy(t, sluice.settings.MONGODB_URL ?? '')
  const stopped = await startWorker(t, { MONGODB_URL: mongodb.url })
  mongodb.slow(400)
  posted.push(await postThread(sluice, aThread()))
  stopped.signal('SIGTERM')
  assert.deepEqual(await stopped.ended, { code: 0, signal: null })
  await assertStored(sluice.db, posted)
})
