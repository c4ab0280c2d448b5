import assert from 'node:assert/strict'
import test from 'node:test'
import { sourceIdOf } from '@sluice/store/ids'
import { startSluice } from '@sluice/test-support'
import { assertStored } from './assert-stored.ts'
import { openDeadlyStore } from './deadly-store.ts'
import { openQueue } from './open-queue.ts'
import { aThread, postThread } from './post-thread.ts'
import { until } from './until.ts'

const TRIES = 5

test('a job that kills every worker fails after five tries, is kept with its reason, and harms no other', { timeout: 40_000 }, async (t) => {
  const sluice = await startSluice(t, { workers: 0 })
  const { queue, drained, expireLocks } = openQueue(t, sluice.settings)
  const poison = aThread()
  const deadly = await openDeadlyStore(sluice.settings.MONGODB_URL ?? '', sourceIdOf('acme', { service: 'custom', externalId: poison.externalId }))
  t.after(deadly.end)
  assert.equal((await postThread(sluice, poison, 'respond-async')).status, 202)
  const others = await Promise.all(Array.from({ length: 30 }, () => postThread(sluice, aThread(), 'respond-async')))

  for (let crash = 1; crash <= TRIES; crash++) {
    const worker = await sluice.startWorker({ MONGODB_URL: deadly.url })
    await deadly.kills(worker)
    console.log(crash, (await queue.getActive()).length, (await queue.getWaitingCount()))
    await expireLocks()
  }
  await sluice.startWorker()
  await until('the job has failed', 10_000, async () => (await queue.getFailedCount()) > 0)
  await drained(10_000)
  const failed = await queue.getFailed()
  for (const j of failed) console.log(j.name, j.failedReason, j.attemptsMade, j.stalledCounter, j.attemptsStarted)
  assert.deepEqual(failed.map((job) => job.name), [`custom/${poison.externalId}`])
  assert.match(failed[0]?.failedReason ?? '', /stalled|crashed/)
  await assertStored(sluice.db, others)
})
