import assert from 'node:assert/strict'
import { requiredUrl } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { adminStatus } from '../support/admin-status.ts'
import { assertStored } from '../support/assert-stored.ts'
import { statusesOf } from '../support/ledger.ts'
import { openQueue } from '../support/open-queue.ts'
import { aThread, postThread } from '../support/post-thread.ts'
import { openPrivateServer } from '../support/private-server.ts'
import { startSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'
import { type Failure, openFailPoint } from './fail-commands.ts'

/** How long MongoDB can't commit, beside what the test itself takes. */
const OUTAGE_S = 75

/** MongoDB answers pings and reads in each of these. */
const FAILURES: Record<string, Failure> = {
  'its disk is full': { errorCode: 14_031 },
  'it is read-only': { errorCode: 371 },
  'its primary steps down': { errorCode: 189 },
  'it no longer authorises Sluice': { errorCode: 13 },
  'it has lost its majority': {
    writeConcernError: { code: 64, errmsg: 'waiting for replication timed out' },
  },
}

describe.concurrent('a MongoDB that answers and cannot commit', () => {
  for (const [reason, failure] of Object.entries(FAILURES)) {
    test(`costs no job an attempt while ${reason}, and everything accepted is stored afterwards`, {
      timeout: 300_000,
    }, async (t) => {
      const mongodb = await openPrivateServer('MongoDB', requiredUrl('REDIS_URL'), {
        testCommands: true,
      })
      t.onTestFinished(mongodb.end)
      const failPoint = await openFailPoint(mongodb.url)
      t.onTestFinished(failPoint.close)
      const sluice = await startSluice(t, { mongodbUrl: mongodb.url })
      const { queue, bulk, drained } = openQueue(t, sluice.settings)
      const [worker] = sluice.workers
      assert(worker !== undefined)
      const first = await postThread(sluice, aThread())
      assert.equal(first.status, 200)

      await failPoint.set(['insert', 'update'], failure)
      t.onTestFinished(failPoint.clear)
      await until(
        'an idle worker is not ready',
        async () => (await adminStatus(worker, '/readyz')) === 503,
      )
      const accepted = await Promise.all(
        Array.from({ length: 40 }, () =>
          postThread(sluice, aThread({ quotes: 20 }), 'respond-async'),
        ),
      )
      assert.deepEqual(statusesOf(accepted), [202])
      await worker.line(({ msg }) => msg === 'store.lost')
      await worker.line(({ msg }) => msg === 'store.probe_failed')
      // Five tries of a job take about 65 s.
      for (let second = 0; second < OUTAGE_S; second += 1)
        accepted.push(await postThread(sluice, aThread(), 'respond-async, wait=1'))
      const jobs = await Promise.all(
        [queue, bulk].map((lane) => lane.getJobs(['wait', 'active', 'delayed', 'failed'])),
      )
      assert(jobs.flat().length >= accepted.filter(({ status }) => status === 202).length)
      for (const job of jobs.flat())
        assert.deepEqual([job.attemptsMade, job.stalledCounter], [0, 0])

      const waiting = Array.from({ length: 10 }, () => postThread(sluice, aThread(), 'wait=30'))
      await until(
        'the last posts to be accepted',
        async () => (await queue.getWaitingCount()) >= waiting.length,
      )
      await failPoint.clear()
      await worker.line(({ msg }) => msg === 'store.recovered')
      await until('the worker is ready', async () => (await adminStatus(worker, '/readyz')) === 200)
      await drained()
      const answered = await Promise.all(waiting)
      assert.deepEqual(statusesOf(answered), [200])
      assert.deepEqual(
        worker.log.filter(({ msg }) => msg === 'job.try_failed' || msg === 'job.failed'),
        [],
      )
      await assertStored(sluice.db, [first, ...accepted, ...answered], { afterCrash: true })
    })
  }
})
