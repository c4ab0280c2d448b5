import assert from 'node:assert/strict'
import { createKey } from '@sluice/credentials/keys'
import { connectRetrying } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import { test } from 'vitest'
import { openOnCall } from '../e2e/support/on-call.ts'
import { readMetric } from '../e2e/support/until-metric.ts'
import { assertStored } from '../support/assert-stored.ts'
import { openQueue } from '../support/open-queue.ts'
import { aThread, postThread } from '../support/post-thread.ts'
import { startSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'

test('a job that Redis refuses to complete is named by the verdict, fails for good, and is completed by a retry', async (t) => {
  const sluice = await startSluice(t, { workers: 0 })
  const view = openQueue(t, sluice.settings)
  const redis = connectRetrying({ redisUrl: sluice.settings.REDIS_URL ?? '', queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  const keys = queueKeys(sluice.settings.QUEUE ?? '')
  const other = {
    ...sluice,
    key: (await createKey(sluice.db, { tenant: 'other', name: 'test' })).key,
  }

  const broken = `${keys.base}retained:of:acme`
  await redis.hset(broken, 'not', 'a number')
  const posted = [
    await postThread(sluice, aThread(), 'respond-async'),
    await postThread(sluice, aThread(), 'respond-async'),
  ]
  // One of five attempts is left, so that the test need not wait for the others.
  for (const { id = '' } of await view.bulk.getWaiting())
    await redis.hset(`${keys.jobs.bulk}${id}`, 'atm', 4)
  const beside = await postThread(other, aThread(), 'respond-async')
  const onCall = await openOnCall(t, sluice)
  const worker = await sluice.startWorker()
  await onCall.named(
    /Jobs could not be completed, \d times in the last minute: the threads are stored, .*WRONGTYPE/,
  )
  await until('both jobs have failed', async () => (await view.bulk.getFailedCount()) === 2)
  await assertStored(sluice.db, [...posted, beside])
  assert.equal(await view.left(), 0)
  assert.equal(await readMetric(worker, 'sluice_completions_refused_total'), 2)
  assert.equal(await readMetric(worker, 'sluice_threads_failed_total'), 0)
  assert.equal(await readMetric(worker, 'sluice_threads_stored_total'), 3)
  const errors = worker.log.filter(({ level }) => level === 'error').map(({ msg }) => msg)
  assert(errors.includes('redis.script_failed'))
  assert.deepEqual(
    errors.filter((msg) => msg !== 'redis.script_failed'),
    ['job.failed', 'job.failed'],
  )
  await onCall.named(/Failed jobs without a thread to store, each with its reason: 2/)

  await redis.del(broken)
  const { stdout } = await onCall.runSluice('jobs', 'retry', '--all')
  await until(
    'both are completed',
    async () => (await view.bulk.getFailedCount()) + (await view.left()) === 0,
  )
  assert.match(stdout, /2/)
  assert.equal(await readMetric(worker, 'sluice_threads_stored_total'), 3)
  await assertStored(sluice.db, [...posted, beside])
  await onCall.well()
})
