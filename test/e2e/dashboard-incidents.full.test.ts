import assert from 'node:assert/strict'
import { createKey } from '@sluice/credentials/keys'
import { beforeSuite, requiredUrl, type StartedProcess, type TestScope } from '@sluice/test-support'
import { afterEach, describe, test } from 'vitest'
import { needs } from '../runner/programs.ts'
import { mongodbCan } from '../support/mongodb-can.ts'
import { openQueue, type QueueView } from '../support/open-queue.ts'
import { postSteadily } from '../support/post-steadily.ts'
import { aThread, type Posted, postThread } from '../support/post-thread.ts'
import { openPrivateServer, type PrivateServer } from '../support/private-server.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'
import { compareNumbers, compareTimes } from './support/compare-numbers.ts'
import { openOnCall, tabTo } from './support/on-call.ts'

/** Callers get a 504 after this time, so an outage has some. */
const WAIT_SECONDS = '3'
const QUEUE_THREADS = 200
const REST_MS = 300
/** What the three callers post in a second, or two if the disk is slow. */
const LAST_SECOND = Math.ceil((3 * 2_000) / REST_MS)
const HOSTILE = [
  'L'.repeat(512),
  'abc\u202egnp',
  '<img src=x onerror=alert(1)><script>alert(2)</script>"\'',
]

const lacks = mongodbCan.refuseByValidator ? needs('chromium') : { skip: true }

describe('the seven incidents', lacks, () => {
  let redis: PrivateServer
  let mongodb: PrivateServer
  let sluice: TestSluice
  let workers: StartedProcess[]
  let onCall: Awaited<ReturnType<typeof openOnCall>>
  let queue: QueueView
  /** What all callers posted, and the answers. */
  const ledger: Posted[] = []
  /** Threads that could not be stored, and those of them that were retried since. */
  const failures = { all: 0, retried: 0 }
  /**
   * The most by which counts may err: processes and Redis lose what they counted in the last second
   * before a kill.
   */
  let unsure = 0

  beforeSuite(async (t) => {
    ;[redis, mongodb] = await Promise.all([
      openPrivateServer('Redis', requiredUrl('MONGODB_URL')),
      openPrivateServer('MongoDB', requiredUrl('REDIS_URL')),
    ])
    for (const server of [redis, mongodb]) t.onTestFinished(server.end)
    const settings = { WAIT_SECONDS, MAX_QUEUE_THREADS: String(QUEUE_THREADS) }
    sluice = await startSluice(t, {
      workers: 2,
      redisUrl: redis.url,
      mongodbUrl: mongodb.url,
      settings,
    })
    workers = [...sluice.workers]
    queue = openQueue(t, sluice.settings)
    onCall = await openOnCall(t, sluice)
    await onCall.well()
  })

  afterEach(async ({ task }) => {
    if (task.result?.errors) return
    await queue.drained()
    const processes = unsure === 0 ? { api: sluice.api, workers } : undefined
    await compareNumbers({ db: sluice.db, queue, onCall, ledger, failures, unsure, processes })
    assert.deepEqual(
      onCall.faults.filter((fault) => !/status of 50[03]|ERR_/.test(fault)),
      [],
    )
  })

  /** Runs an incident while callers post, one of them without waiting. */
  async function whilePosting(t: TestScope, incident: () => Promise<unknown>): Promise<void> {
    const load = postSteadily(t, sluice, { callers: 2, restMs: REST_MS, deletes: false })
    const asynchronous = postSteadily(t, sluice, {
      callers: 1,
      restMs: REST_MS,
      deletes: false,
      prefer: () => 'respond-async',
    })
    await load.moreStored(3)
    await incident()
    ledger.push(...(await load.stop()), ...(await asynchronous.stop()))
  }

  /** Lets MongoDB refuse these threads and no other, and posts them. */
  async function postRefused(externalIds: string[]): Promise<void> {
    await sluice.db.command({
      collMod: 'sources',
      validator: { externalId: { $nin: externalIds } },
    })
    const threads = externalIds.map((externalId) => aThread({ externalId }))
    ledger.push(
      ...(await Promise.all(threads.map((thread) => postThread(sluice, thread, 'respond-async')))),
    )
    failures.all += externalIds.length
  }
  const acceptAll = () => sluice.db.command({ collMod: 'sources', validator: {} })

  /** Stops a process or a server while `incident` runs. */
  async function whileStopped(
    stopped: { signal(name: 'SIGSTOP' | 'SIGCONT'): unknown },
    incident: () => Promise<void>,
  ) {
    await stopped.signal('SIGSTOP')
    await incident().finally(() => stopped.signal('SIGCONT'))
  }

  async function kill(process: StartedProcess): Promise<void> {
    process.signal('SIGKILL')
    await process.ended
    unsure += LAST_SECOND
  }

  test('a validator refuses threads, also with hostile ids: one is found, retried and checked by the keyboard alone', async (t) => {
    const { page } = onCall
    await whilePosting(t, async () => {
      await postRefused(['refused-1', ...HOSTILE])
      await onCall.named(
        /Threads are failing: 4 threads could not be stored, the last one \d+ s ago/,
      )
      await onCall.inspectAll('1 and 7 validator and hostile ids')
      await acceptAll()
      for (const name of [
        /^Show 4 failures$/,
        /^Document failed/,
        /^custom\/refused-1/,
        /^Retry$/,
      ]) {
        const before = page.url()
        await tabTo(page, name)
        await page.keyboard.press('Enter')
        await page.waitForURL((url) => url.href !== before)
      }
      await page.getByText('completed: 1 of 1 retried').waitFor()
      await page.keyboard.press('/')
      await page.locator('#q:focus').waitFor()
      await page.keyboard.type('refused-1')
      await page.keyboard.press('Enter')
      await page.getByText('completed', { exact: true }).waitFor()
      failures.retried += 1
      await page.goto(`${onCall.url}/overview`)
      await onCall.named(/All is well.*3 threads could not be stored, and wait for an operator/s)
    })
  })

  test('MongoDB is killed, and hangs', async (t) => {
    await whilePosting(t, async () => {
      await mongodb.kill()
      await onCall.named(
        /MongoDB has been unavailable for \d+ s, for 2 of 2 workers.*; \d+ jobs wait/,
      )
      await onCall.inspectAll('2 MongoDB killed')
      await mongodb.startAgain()
      await onCall.well()
      await whileStopped(mongodb, async () => {
        await onCall.named(
          /MongoDB has been unavailable for \d+ s, for [12] of 2 workers.*; \d+ jobs? waits?/,
        )
      })
      await onCall.well()
    })
    await queue.drained()
    await compareTimes({ onCall, ledger })
  })

  const redisUnavailable = /Redis (has been unavailable since|cannot be reached|is unavailable)/

  test('Redis hangs', async (t) => {
    await whilePosting(t, async () => {
      await whileStopped(redis, async () => {
        await onCall.named(redisUnavailable)
      })
      await onCall.well()
    })
  })

  test('the queue is full, because a lane is paused', async (t) => {
    const { key } = await createKey(sluice.db, { tenant: 'other', name: 'other' })
    t.onTestFinished(async () => void (await onCall.runSluice('resume', 'bulk')))
    await whilePosting(t, async () => {
      await onCall.runSluice('pause', 'bulk', '--why', 'MongoDB is upgraded')
      for (const one of [sluice.key, key]) {
        const posts = Array.from({ length: QUEUE_THREADS / 2 }, () =>
          postThread({ url: sluice.url, key: one }, aThread(), 'respond-async'),
        )
        ledger.push(...(await Promise.all(posts)))
      }
      await onCall.named(/The queue is full: (199|200) of 200 threads/)
      await onCall.named(
        /The bulk lane has been paused for \d+ s by [0-9a-f]+ \(MongoDB is upgraded\)/,
      )
      await onCall.inspectAll('6 queue full')
      await onCall.runSluice('resume', 'bulk')
      await onCall.well()
    })
  })

  const noApi = /No API has shown a sign of life for \d+ s; nothing is accepted/

  test('the only API hangs', async (t) => {
    await whilePosting(t, async () => {
      await whileStopped(sluice.api, async () => {
        await onCall.named(noApi, ['page', 'cli'])
        await onCall.inspectAll('5 API hangs')
      })
      await onCall.well()
    })
  })

  test('Redis is killed', async (t) => {
    await whilePosting(t, async () => {
      unsure += LAST_SECOND
      await redis.kill()
      await onCall.named(redisUnavailable)
      await onCall.inspectAll('3 Redis killed')
      await redis.startAgain()
      await onCall.well()
    })
  })

  test('the only API is killed', async (t) => {
    await whilePosting(t, async () => {
      await kill(sluice.api)
      // The CLI reads from Redis while the API does not answer.
      await onCall.named(noApi, ['page', 'cli'])
      const { api, url } = await sluice.startApi({ PORT: new URL(sluice.url).port })
      assert.equal(url, sluice.url)
      sluice.api = api
      await onCall.well()
    })
  })

  test('a worker is killed, another is stopped in order, and all are killed', async (t) => {
    await whilePosting(t, async () => {
      const [first, second] = workers
      assert(first && second)
      await kill(first)
      const isGone = new RegExp(`The worker \\S+:${first.pid} has shown no sign of life for \\d+ s`)
      await onCall.named(isGone)
      await onCall.inspectAll('4 one worker gone')
      workers = [second, await sluice.startWorker()]
      await onCall.well()
      second.signal('SIGTERM')
      await second.ended
      await until('the stopped worker to be forgotten', async () => {
        const { processes, verdict } = await onCall.status()
        return (
          processes.every(({ pid }) => pid !== second.pid) &&
          verdict?.every(({ level }) => level === 'note')
        )
      })
      for (const worker of workers.slice(1)) await kill(worker)
      await onCall.named(/No worker has shown a sign of life for \d+ s; \d+ jobs wait/)
      await onCall.inspectAll('4 all workers gone')
      workers = [await sluice.startWorker(), await sluice.startWorker()]
      await onCall.well()
    })
  })
})
