import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { beforeSuite } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { assertStored } from '../support/assert-stored.ts'
import { fateOf, statusesOf } from '../support/ledger.ts'
import { openQueue } from '../support/open-queue.ts'
import { aThread, type Posted, postThread } from '../support/post-thread.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'
import { type Caller, createCaller } from './support/caller.ts'
import { jobIn, jobPathIn, storedIn } from './support/read-reply.ts'
import { type Body, someThread } from './support/some-thread.ts'
import { readMetric, untilMetric } from './support/until-metric.ts'

const FROZEN_MS = 3_000
const POSTS = 200

describe('API replicas share a queue, and each answers its own callers', () => {
  let sluice: TestSluice
  let urls: string[]
  let callers: Caller[]
  beforeSuite(async (t) => {
    sluice = await startSluice(t, { workers: 2 })
    const second = await sluice.startApi()
    urls = [sluice.url, second.url]
    callers = urls.map((url) => createCaller({ url, key: sluice.key }))
  })

  /** A busy API refuses what Redis does not take within a second. */
  const postUntilAccepted = (caller: Caller | undefined, thread: Body) =>
    until('a thread is accepted', async () => {
      const reply = await caller?.post(thread)
      return reply?.status === 503 || reply?.status === 504 ? undefined : reply
    })

  test(`of ${POSTS} posts of one thread at once exactly one creates it, and all their quotes are there`, async (t) => {
    const { drained } = openQueue(t, sluice.settings)
    const externalId = randomUUID()
    const posted: Posted[] = []
    // Each post shares one quote with the post before it. What a busy API refuses is posted again.
    const postOnce = (post: number) =>
      until(`post ${post} is accepted`, async () => {
        const url = urls[post % 2] ?? ''
        const answer = await postThread(
          { url, key: sluice.key },
          aThread({ externalId, quotes: 2, from: post }),
        )
        posted.push(answer)
        return fateOf(answer) === 'accepted'
      })
    await Promise.all(Array.from({ length: POSTS }, (_, post) => postOnce(post)))
    await drained()
    assert.deepEqual(statusesOf(posted), [200])
    assert.equal(posted.filter((answer) => outcomeOf(answer) === 'created').length, 1)
    await assertStored(sluice.db, posted)
    const last = await postThread(sluice, aThread({ externalId, quotes: 1 }))
    await assertStored(sluice.db, [...posted, last])
  })

  test('200 concurrent callers at each of two replicas get their own answers', async () => {
    const threads = callers.map(() => Array.from({ length: 200 }, () => someThread()))
    const replies = await Promise.all(
      threads.map((some, at) =>
        Promise.all(some.map((thread) => postUntilAccepted(callers[at], thread))),
      ),
    )
    for (const [at, some] of replies.entries()) {
      const stored = some.map((reply) => storedIn(reply).source.externalId)
      assert.deepEqual(
        stored,
        threads[at]?.map(({ externalId }) => externalId),
      )
    }
    const externalId = { $in: threads.flat().map((thread) => thread.externalId) }
    assert.equal(await sluice.db.collection('sources').countDocuments({ externalId }), 400)
  })

  test('a request that is posted after an answer is accepted later, at any replica', async () => {
    const first = someThread({ quotes: [] })
    for (let turn = 0; turn < 20; turn++) {
      const reply = await callers[turn % 2]?.post({ ...first, title: `title ${turn}` })
      assert.equal(reply && storedIn(reply).source.title, `title ${turn}`)
    }
  })

  test('every replica finds a job of another replica', async () => {
    const [one, other] = callers
    const reply = await one?.post(someThread(), { prefer: 'respond-async' })
    const job = reply && (await other?.get(jobPathIn(reply), { prefer: 'wait=20' }))
    assert.equal(job && jobIn(job).state, 'completed')
  })

  test('a replica that is frozen for three seconds answers all of its 50 callers', async () => {
    const signalWorkers = (name: NodeJS.Signals) =>
      sluice.workers.forEach((worker) => void worker.signal(name))
    const threads = Array.from({ length: 50 }, () => someThread())
    const logged = () =>
      new Set(sluice.workers.flatMap(({ log }) => log).map(({ externalId }) => externalId))
    const accepted = await readMetric(sluice.api, 'sluice_threads_accepted_total')
    signalWorkers('SIGSTOP')
    const waiting = threads.map((thread) => postUntilAccepted(callers[0], thread))
    await untilMetric(sluice.api, 'sluice_threads_accepted_total', accepted + 50)
    sluice.api.signal('SIGSTOP')
    signalWorkers('SIGCONT')
    await pause(FROZEN_MS)
    await until('all threads are stored', () => {
      const seen = logged()
      return threads.every(({ externalId }) => seen.has(externalId))
    })
    sluice.api.signal('SIGCONT')
    for (const reply of await Promise.all(waiting))
      assert.equal(storedIn(reply).source.outcome, 'created')
  })
})

function outcomeOf({ body: { source } }: Posted): unknown {
  return typeof source === 'object' && source !== null && 'outcome' in source
    ? source.outcome
    : undefined
}
