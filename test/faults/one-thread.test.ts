import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'vitest'
import { assertStored } from '../support/assert-stored.ts'
import { fateOf, statusesOf } from '../support/ledger.ts'
import { openQueue } from '../support/open-queue.ts'
import { aThread, type Posted, postThread } from '../support/post-thread.ts'
import { startSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'

const POSTS = 200

test(`of ${POSTS} posts of one thread at once exactly one creates it, and all their quotes are there`, async (t) => {
  const sluice = await startSluice(t, { workers: 2 })
  const { drained } = openQueue(t, sluice.settings)
  const replica = await sluice.startApi()
  const externalId = randomUUID()
  const posted: Posted[] = []
  // Each post shares one quote with the post before it. What a busy API refuses is posted again.
  const postOnce = (post: number) =>
    until(`post ${post} is accepted`, async () => {
      const url = post % 2 === 0 ? sluice.url : replica.url
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

function outcomeOf({ body: { source } }: Posted): unknown {
  return typeof source === 'object' && source !== null && 'outcome' in source
    ? source.outcome
    : undefined
}
