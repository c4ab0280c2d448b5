import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { beforeSuite, requiredUrl, type StartedProcess } from '@sluice/test-support'
import { test } from 'vitest'
import { assertStored } from '../support/assert-stored.ts'
import { openQueue } from '../support/open-queue.ts'
import { postSteadily } from '../support/post-steadily.ts'
import type { Posted } from '../support/post-thread.ts'
import { openPrivateServer, type PrivateServer } from '../support/private-server.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'

type Signal = (name: 'SIGSTOP' | 'SIGCONT') => unknown

interface Stopped {
  what: string
  ms: number
  /** Sends a signal to it. */
  of: (sluice: TestSluice) => Signal
}

let redis: PrivateServer
let mongodb: PrivateServer
let sluice: TestSluice
/** What all tests so far posted. */
const ledger: Posted[] = []
beforeSuite(async (t) => {
  redis = await openPrivateServer('Redis', requiredUrl('MONGODB_URL'))
  t.onTestFinished(redis.end)
  mongodb = await openPrivateServer('MongoDB', requiredUrl('REDIS_URL'))
  t.onTestFinished(mongodb.end)
  sluice = await startSluice(t, { workers: 2, redisUrl: redis.url, mongodbUrl: mongodb.url })
})

const signalTo = (process: StartedProcess | undefined): Signal => {
  return (name) => process?.signal(name)
}
// The short times are beyond what each of the others waits for a reply; for a worker, beyond its
// locks and the next look for expired ones.
const all: Stopped[] = [
  { what: 'Redis', ms: 15_000, of: () => redis.signal },
  { what: 'MongoDB', ms: 15_000, of: () => mongodb.signal },
  { what: 'the API', ms: 15_000, of: ({ api }) => signalTo(api) },
  { what: 'a worker', ms: 15_000, of: ({ workers: [worker] }) => signalTo(worker) },
]

for (const { what, ms, of } of all) {
  test(`after ${what} is stopped for ${ms / 1000} s and continued, all that was accepted is stored, and every answer was true`, async (t) => {
    const { queue, bulk, drained } = openQueue(t, sluice.settings)
    const signal = of(sluice)
    const load = postSteadily(t, sluice, { callers: 12 })
    const asynchronous = postSteadily(t, sluice, {
      callers: 4,
      prefer: () => 'respond-async',
    })
    await load.moreStored(30)

    t.onTestFinished(() => void signal('SIGCONT'))
    await signal('SIGSTOP')
    await pause(ms)
    await signal('SIGCONT')
    await load.moreStored(30)
    const posted = [...(await load.stop()), ...(await asynchronous.stop())]
    await drained()
    const statuses = Map.groupBy(posted, ({ status }) => status)
    await t.annotate(
      Array.from(statuses, ([status, answers]) => `${answers.length} × ${status}`).join(', '),
    )
    assert.deepEqual(
      [...statuses.keys()].filter((status) => ![200, 202, 503, 504].includes(Number(status))),
      [],
    )
    assert.deepEqual([await queue.getFailedCount(), await bulk.getFailedCount()], [0, 0])
    ledger.push(...posted)
    await assertStored(sluice.db, ledger, { afterCrash: true })
  })
}
