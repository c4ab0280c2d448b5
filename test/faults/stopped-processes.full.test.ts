import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { connectRetrying } from '@sluice/process/redis'
import { sourceIdOf } from '@sluice/store/ids'
import { beforeSuite, requiredUrl, type StartedProcess } from '@sluice/test-support'
import { test } from 'vitest'
import { createCaller } from '../e2e/support/caller.ts'
import { jobIn, jobPathIn } from '../e2e/support/read-reply.ts'
import { assertStored } from '../support/assert-stored.ts'
import { commandOf, isCommand, splitMessages } from '../support/mongodb-messages.ts'
import { openQueue } from '../support/open-queue.ts'
import { postSteadily } from '../support/post-steadily.ts'
import type { Posted } from '../support/post-thread.ts'
import { openPrivateServer, type PrivateServer } from '../support/private-server.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { OPEN_GATE, openTcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'

type Signal = (name: 'SIGSTOP' | 'SIGCONT') => unknown

interface Stopped {
  what: string
  ms: number
  /** Sends a signal to it. */
  of: (sluice: TestSluice) => Signal
}

interface Stopping {
  worker: StartedProcess
  thaw: () => void
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

test('a worker that was stopped stores nothing that was erased of a job that has failed meanwhile', async (t) => {
  const own = await startSluice(t, { workers: 0 })
  const { bulk, expireLocks } = openQueue(t, own.settings)
  const caller = createCaller(own)
  const id = sourceIdOf('acme', { service: 'slack', externalId: 'one' })
  const workers: StartedProcess[] = []
  /** The first worker that has asked MongoDB for the thread gets no answer, and is stopped. */
  const { promise: stopped, resolve: stop } = Promise.withResolvers<Stopping>()
  let isFirst = true
  for (const place of [0, 1]) {
    const proxy = await openTcpProxy(t, own.settings.MONGODB_URL ?? '', () => {
      const split = splitMessages()
      const toServer = (chunk: Buffer) =>
        split(chunk, (message) => {
          const reads = isCommand(message) && commandOf(message)
          if (reads && isFirst && reads.find === 'sources') {
            isFirst = false
            workers[place]?.signal('SIGSTOP')
            proxy.freeze()
            stop({ worker: workers[place] ?? assert.fail(), thaw: proxy.thaw })
          }
          return true
        })
      return { ...OPEN_GATE, toServer }
    })
    workers.push(await own.startWorker({ MONGODB_URL: proxy.url }))
  }
  const quotes = [
    { externalId: 'a', text: 'hers', speaker: 'Ada' },
    { externalId: 'b', text: 'his', speaker: 'Bob' },
  ]
  const thread = { service: 'slack', externalId: 'one', title: 'A thread', quotes }
  const posted = await caller.post(thread, { prefer: 'respond-async' })
  const { worker, thaw } = await stopped
  t.onTestFinished(() => void worker.signal('SIGCONT'))
  // It was the job's last attempt.
  const [active] = await bulk.getActive()
  const direct = connectRetrying({ redisUrl: own.settings.REDIS_URL ?? '', queue: '' }, () => {})
  await direct.hset(bulk.toKey(active?.id ?? ''), 'atm', 4)
  direct.disconnect()
  await expireLocks()
  await until('the job fails', async () => {
    return jobIn(await caller.get(jobPathIn(posted))).state === 'failed'
  })
  const headers = { 'content-type': 'application/json' }
  const body = { speaker: 'Ada', mode: 'remove' }
  const erasure = await caller.send('/erasures', { method: 'POST', headers, body })
  const path = erasure.headers.get('location') ?? ''
  await until('it is completed', async () => /"completed"/.test((await caller.get(path)).text))

  thaw()
  worker.signal('SIGCONT')
  await worker.line(({ msg }) => msg === 'job.stored' || msg === 'queue.failed')
  const stored = await own.db.collection('quotes').find({ sourceId: id }).toArray()
  assert.deepEqual(
    stored.filter(({ speaker }) => speaker !== 'Bob'),
    [],
  )
  const left = await caller.get(`/sources/${id}`)
  assert.doesNotMatch(left.text, /"(Ada|hers)"/)
})
