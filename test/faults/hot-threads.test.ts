import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { Db } from 'mongodb'
import { test } from 'vitest'
import { aThread, postThread } from '../support/post-thread.ts'
import { scale } from '../support/scale.ts'
import { startSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'

// Several workers write the same threads all the time: the totals must be right although no process fails.
// The scale is one at which the protocol before ADR 2 failed in three of five runs.

const WORKERS = 4
const CALLERS = 48
const THREADS = 48
/**
 * Every so many posts of a caller bring many quotes, so that a batch is still writing while the next ones open its
 * sources.
 */
const LARGE_EVERY = 10
const LARGE = 600
const SECONDS = scale(5, 20)

test(`${WORKERS} workers write ${THREADS} hot threads for ${SECONDS} s: every caller gets an answer, and all totals agree`, async (t) => {
  const sluice = await startSluice(t, { workers: WORKERS })
  const run = randomUUID()
  const statuses = new Map<unknown, number>()
  const end = performance.now() + SECONDS * 1000
  let posts = 0

  async function callUntilEnd(): Promise<void> {
    while (performance.now() < end) {
      const post = posts++
      const quotes = post % LARGE_EVERY === 0 ? LARGE : 1 + (post % 3)
      const thread = aThread({ externalId: `${run}-${post % THREADS}`, from: post * LARGE, quotes, text: 'two words' })
      const { status } = await postThread(sluice, thread)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  }
  const began = performance.now()
  await Promise.all(Array.from({ length: CALLERS }, callUntilEnd))
  const rate = posts / ((performance.now() - began) / 1000)
  await t.annotate(`${posts} posts, ${rate.toFixed(1)}/s, ${JSON.stringify(Object.fromEntries(statuses))}`)

  assert.deepEqual([...statuses.keys()], [200], 'every caller is answered 200')
  let wrong: unknown[] = []
  await until('every total is right', async () => {
    wrong = await wrongTotals(sluice.db)
    return wrong.length === 0
  }).catch(() => {})
  assert.deepEqual(wrong, [])
})

async function wrongTotals(db: Db): Promise<unknown[]> {
  const sources = await db.collection<Totals & { externalId: string }>('sources').find().toArray()
  const sums = await db
    .collection('quotes')
    .aggregate<Totals>([
      { $match: { sourceId: { $in: sources.map(({ _id }) => _id) } } },
      { $group: { _id: '$sourceId', wordCount: { $sum: '$wordCount' }, quoteCount: { $sum: 1 } } },
    ])
    .toArray()
  const sumOf = new Map(sums.map((sum) => [sum._id, sum]))
  return sources.flatMap(({ _id, externalId, wordCount, quoteCount }) => {
    const sum = sumOf.get(_id)
    if (sum?.wordCount === wordCount && sum.quoteCount === quoteCount) return []
    return [{ externalId, wordCount, quoteCount, stored: sum }]
  })
}

interface Totals {
  _id: string
  wordCount: number
  quoteCount: number
}
