// Engines that speak MongoDB's protocol fail in ways of their own.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { requiredUrl } from '@sluice/test-support'
import { type TestContext, test } from 'vitest'
import { assertStored } from '../support/assert-stored.ts'
import { statusesOf } from '../support/ledger.ts'
import { openQueue } from '../support/open-queue.ts'
import { aThread, type Posted, postThread } from '../support/post-thread.ts'
import { startSluice } from '../support/start-sluice.ts'
import { openTcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { type CommandFailure, failCommands, needsStore } from './foreign-engine.ts'

const CALLERS = 32
const WORKERS = 2

/** A Sluice whose workers reach MongoDB through a proxy that fails commands. */
async function startBehind(t: TestContext, fail: Parameters<typeof failCommands>[0]) {
  const proxy = await openTcpProxy(t, requiredUrl('MONGODB_URL'), failCommands(fail))
  const sluice = await startSluice(t, { workers: 0 })
  const mongodbUrl = new URL(proxy.url)
  mongodbUrl.pathname = `/${sluice.db.databaseName}`
  const starting = Array.from({ length: WORKERS }, () =>
    sluice.startWorker({ MONGODB_URL: mongodbUrl.href }),
  )
  const workers = await Promise.all(starting)
  const triesFailed = () =>
    workers.flatMap(({ log }) =>
      log.filter(({ msg }) => msg === 'job.try_failed' || msg === 'job.failed'),
    )
  return { sluice, workers, triesFailed, ...openQueue(t, sluice.settings) }
}

/**
 * What a gateway in front of PostgreSQL answers while PostgreSQL restarts: an error of its own, or
 * a number of PostgreSQL's.
 */
const UNAVAILABLE: readonly Omit<CommandFailure, 'takesEffect'>[] = [
  { code: 1, errmsg: 'the connection was refused' },
  { code: 50_463_173, errmsg: 'the database system is starting up' },
]
const OUTAGES = 2

test('costs no job an attempt while its store restarts behind it, although it answers codes that MongoDB does not have', async (t) => {
  let isUnavailable = false
  let failures = 0
  const { sluice, workers, triesFailed, drained } = await startBehind(t, (command) => {
    if (!isUnavailable || !needsStore(command)) return undefined
    failures += 1
    const hasEffect = failures % 2 === 0
    return {
      ...(UNAVAILABLE[failures % UNAVAILABLE.length] ?? { code: 1, errmsg: '' }),
      takesEffect: () => hasEffect,
    }
  })
  const posted: Posted[] = []
  let isOver = false
  async function keepPosting(): Promise<void> {
    const edited = randomUUID()
    for (let post = 0; !isOver; post++) {
      const isEdit = post % 5 === 0
      const thread = isEdit
        ? aThread({ externalId: edited, text: `words of post ${post}` })
        : aThread()
      posted.push(await postThread(sluice, thread))
    }
  }
  const callers = Promise.all(Array.from({ length: CALLERS }, keepPosting))
  const times = (msg: string) =>
    workers.map(({ log }) => log.filter((line) => line.msg === msg).length)
  for (let outage = 1; outage <= OUTAGES; outage++) {
    const before = posted.length
    await until('posts to be stored', async () => posted.length > before + 2 * CALLERS)
    isUnavailable = true
    await until('both workers to notice', async () =>
      times('store.lost').every((count) => count === outage),
    )
    isUnavailable = false
    await until('both workers to go on', async () =>
      times('store.recovered').every((count) => count === outage),
    )
  }
  isOver = true
  await callers
  await drained()
  assert(failures > 0)
  assert.deepEqual([statusesOf(posted), triesFailed()], [[200], []])
  await assertStored(sluice.db, posted, { afterCrash: true })
})

const HOT_THREADS = 5
const POSTS_EACH = 8

test('stores hot threads once and whole although commands meet each other and fail when half of their writes took effect', async (t) => {
  let writes = 0
  let conflicts = 0
  const { sluice, triesFailed, drained } = await startBehind(t, (command) => {
    if (!('insert' in command || 'update' in command)) return undefined
    writes += 1
    if (writes % 5 !== 0) return undefined
    conflicts += 1
    const odd = conflicts % 2
    return { code: 112, errmsg: 'deadlock detected', takesEffect: (at) => at % 2 === odd }
  })
  const ids = Array.from({ length: HOT_THREADS }, () => String(randomUUID()))
  const posted: Posted[] = []
  const callers = Array.from({ length: CALLERS }, async (_, caller) => {
    for (let post = 0; post < POSTS_EACH; post++) {
      const externalId = ids[(caller + post) % HOT_THREADS] ?? ''
      posted.push(
        await postThread(
          sluice,
          aThread({ externalId, quotes: 3, from: caller * POSTS_EACH + post }),
        ),
      )
    }
  })
  await Promise.all(callers)
  await drained()
  assert(conflicts > POSTS_EACH)
  assert.deepEqual([statusesOf(posted), triesFailed()], [[200], []])
  await assertStored(sluice.db, posted, { afterCrash: true })
})
