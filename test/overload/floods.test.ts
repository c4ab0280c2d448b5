import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { createKey } from '@sluice/store/keys'
import { test } from 'vitest'
import { assertStored } from '../support/assert-stored.ts'
import { openQueue } from '../support/open-queue.ts'
import { aThread, type Posted, postThread } from '../support/post-thread.ts'
import { scale } from '../support/scale.ts'
import { startSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'

const countBy = (posted: readonly Posted[]) =>
  Object.fromEntries(
    [...Map.groupBy(posted, ({ status, body }) => `${status} ${body.code ?? ''}`.trim())].map(([key, of]) => [
      key,
      of.length,
    ]),
  )

test('of more posts at once than the service can take, each 503 was not stored and each other one was', async (t) => {
  const sluice = await startSluice(t, { settings: { WAIT_SECONDS: '20' } })
  const { drained } = openQueue(t, sluice.settings)
  const text = 'word '.repeat(10_000)
  const posted: Posted[] = []
  // A busy machine may refuse nearly all of the first posts.
  await until('more than 100 to be stored', async () => {
    const posts = Array.from({ length: scale(400, 2_000) }, () => postThread(sluice, aThread({ quotes: 2, text })))
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
  // Whatever had a 503 must not be there; `assertStored` finds what nobody may have stored among the others.
  await assertStored(
    sluice.db,
    posted.filter(({ status, body }) => status !== 503 && body.code !== 'acceptance_unknown'),
  )
})

/**
 * The flood of one tenant: more than a worker stores in the seconds below. Its callers wait for a second each, as their
 * jobs travel in the interactive lane then.
 */
const FLOOD_ROUNDS = scale(1, 3)
const FLOOD_CALLERS = 1_000
const SECONDS = scale(3, 8)

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
