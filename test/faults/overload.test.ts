import assert from 'node:assert/strict'
import { createKey } from '@sluice/store/keys'
import { test } from 'vitest'
import { startSluice } from '../start-sluice.ts'
import { assertStored } from './assert-stored.ts'
import { openQueue } from './open-queue.ts'
import { aThread, type Posted, postThread } from './post-thread.ts'

const countBy = (posted: readonly Posted[]) =>
  Object.fromEntries(
    [...Map.groupBy(posted, ({ status, body }) => `${status} ${body.code ?? ''}`.trim())].map(([key, of]) => [
      key,
      of.length,
    ]),
  )

test('of more posts at once than the service can take, each 503 was not stored and each other one was', {
  timeout: 60_000,
}, async (t) => {
  const sluice = await startSluice(t, { settings: { WAIT_SECONDS: '20' } })
  const { drained } = openQueue(t, sluice.settings)
  const text = 'word '.repeat(10_000)
  const posted = await Promise.all(
    Array.from({ length: 1_000 }, () => postThread(sluice, aThread({ quotes: 2, text }))),
  )
  await drained(30_000)
  const counts = countBy(posted)
  const told = new Set<unknown>([200, 503, 504])
  assert(
    posted.every(({ status }) => told.has(status)),
    JSON.stringify(counts),
  )
  assert((counts['200'] ?? 0) > 100, JSON.stringify(counts))
  // Whatever had a 503 must not be there; `assertStored` finds what nobody may have stored among the others.
  await assertStored(
    sluice.db,
    posted.filter(({ status, body }) => status !== 503 && body.code !== 'acceptance_unknown'),
  )
})

test('a tenant that posts once a second is answered during the flood of another one', {
  timeout: 60_000,
}, async (t) => {
  const sluice = await startSluice(t)
  const { key } = await createKey(sluice.db, { tenant: 'quiet', name: 'quiet' })
  const flood = { ...sluice, stopped: false }
  const thread = () => aThread({ quotes: 100, text: 'five words in this quote '.repeat(8) })
  const flooded: Posted[] = []
  const flooding = Promise.all(
    Array.from({ length: 600 }, async () => {
      while (!flood.stopped) {
        const answer = await postThread(flood, thread())
        flooded.push(answer)
        // A caller that is refused comes again too early.
        if (answer.status !== 200) await new Promise((resolve) => setTimeout(resolve, 200))
      }
    }),
  )
  const posts: Promise<Posted>[] = []
  for (let second = 0; second < 15; second++) {
    posts.push(postThread({ ...sluice, key }, aThread()))
    await new Promise((resolve) => setTimeout(resolve, 1_000))
  }
  const answers = await Promise.all(posts)
  flood.stopped = true
  await flooding
  const slow = answers.filter(({ status, ms }) => status !== 200 || ms > 5_000)
  assert.deepEqual(
    slow.map(({ status, ms, body }) => [status, ms, body.code]),
    [],
    JSON.stringify(countBy(flooded)),
  )
})
