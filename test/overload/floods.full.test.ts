import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { createKey } from '@sluice/credentials/keys'
import { test } from 'vitest'
import { assertStored } from '../support/assert-stored.ts'
import { openQueue } from '../support/open-queue.ts'
import { aThread, type Posted, postThread } from '../support/post-thread.ts'
import { startSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'
import { openLoop } from './open-loop.ts'

const countBy = (posted: readonly Posted[]) =>
  Object.fromEntries(
    [...Map.groupBy(posted, ({ status, body }) => `${status} ${body.code ?? ''}`.trim())].map(
      ([key, of]) => [key, of.length],
    ),
  )

test('of more posts at once than the service can take, each 503 was not stored and each other one was', async (t) => {
  const sluice = await startSluice(t, { settings: { WAIT_SECONDS: '20' } })
  const { drained } = openQueue(t, sluice.settings)
  const text = 'word '.repeat(10_000)
  const posted: Posted[] = []
  // A busy machine may refuse nearly all of the first posts.
  await until('more than 100 to be stored', async () => {
    const posts = Array.from({ length: 2_000 }, () =>
      postThread(sluice, aThread({ quotes: 2, text })),
    )
    posted.push(...(await Promise.all(posts)))
    return posted.filter(({ status }) => status === 200).length > 100
  })
  await drained()
  const counts = countBy(posted)
  const told = new Set<unknown>([200, 503, 504])
  assert(
    posted.every(({ status }) => told.has(status)),
    JSON.stringify(counts),
  )
  // Whatever had a 503 must not be there. What Redis did not confirm in time may be, and the ledger
  // knows that.
  await assertStored(
    sluice.db,
    posted.filter(({ status }) => status !== 503),
  )
})

/**
 * The flood of one tenant: more than a worker stores in the seconds below. Its callers wait for a
 * second each, as their jobs travel in the interactive lane then.
 */
const FLOOD_ROUNDS = 3
const FLOOD_CALLERS = 1_000
const SECONDS = 8

test('a tenant that posts once a second is answered during the flood of another one', async (t) => {
  const sluice = await startSluice(t)
  const { key } = await createKey(sluice.db, { tenant: 'quiet', name: 'quiet' })
  const text = 'five words in this quote'
  const [worker] = sluice.workers
  worker?.signal('SIGSTOP')
  const flooded: Posted[] = []
  for (let round = 0; round < FLOOD_ROUNDS; round++) {
    const posts = Array.from({ length: FLOOD_CALLERS }, () =>
      postThread(sluice, aThread({ quotes: 20, text }), 'wait=1'),
    )
    flooded.push(...(await Promise.all(posts)))
  }
  worker?.signal('SIGCONT')
  const posts: Promise<Posted>[] = []
  for (let second = 0; second < SECONDS; second++) {
    posts.push(postThread({ ...sluice, key }, aThread()))
    await pause(1_000)
  }
  const answers = await Promise.all(posts)
  const seen = answers.map(({ status, ms }) => `${status} after ${Math.round(ms)} ms`).join(', ')
  assert(
    answers.every(({ status, ms }) => status === 200 && ms < 5_000),
    `${seen}; the flood: ${JSON.stringify(countBy(flooded))}`,
  )
})

/** About 10 MB a second, in posts of 100 KB: more than a worker stores. */
const LARGE_FLOOD = { rate: 100, seconds: 15 }
/** Posts that the other tenant begins at once, each second: more than are answered in a second. */
const AT_ONCE = 3
const MOST_MS = 2_000

test('a tenant with several open posts does not wait for the large posts of a flood', async (t) => {
  const sluice = await startSluice(t)
  const { key } = await createKey(sluice.db, { tenant: 'quiet', name: 'quiet' })
  const next = () => ({ thread: aThread({ quotes: 100, text: 'ten bytes '.repeat(100) }) })
  const flooding = openLoop({ ...sluice, ...LARGE_FLOOD, next })
  const posts: Promise<Posted>[] = []
  for (let second = 0; second < LARGE_FLOOD.seconds; second++) {
    await pause(1_000)
    for (let at = 0; at < AT_ONCE; at++) posts.push(postThread({ ...sluice, key }, aThread()))
  }
  const answers = await Promise.all(posts)
  const flooded = await flooding
  const accepted = flooded
    .filter(({ status }) => status === 200 || status === 504)
    .map(({ ms }) => ms)
  const median =
    accepted.toSorted((one, other) => one - other)[Math.floor(accepted.length / 2)] ?? 0
  const times = answers.map(({ status, ms }) => `${status} after ${Math.round(ms)} ms`).join(', ')
  const seen = `${times}; the flood: ${JSON.stringify(countBy(flooded))}, median ${Math.round(median)} ms`
  await t.annotate(seen)
  // A machine that is busy with other work takes longer for everything.
  const most = Math.max(MOST_MS, median / 2)
  assert(
    answers.every(({ status, ms }) => status === 200 && ms < most),
    seen,
  )
})
