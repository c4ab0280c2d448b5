import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createKey } from '@sluice/credentials/keys'
import type { SourceDocument } from '@sluice/store'
import { test } from 'vitest'
import { assertStored } from '../support/assert-stored.ts'
import { statusesOf } from '../support/ledger.ts'
import { openOperator } from '../support/open-operator.ts'
import { openQueue } from '../support/open-queue.ts'
import { aThread, type Posted, postThread } from '../support/post-thread.ts'
import { startSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'
import { preload } from './preloads/preload.ts'

const FIVE_MINUTES_MS = 300_000
const POSTS = 12
/** How exactly a wait of one second and a moment of acceptance must be kept, in ms. */
const TOLERANCE_MS = 5_000

const shifts = [
  ['ahead', FIVE_MINUTES_MS],
  ['behind', -FIVE_MINUTES_MS],
] as const

for (const [direction, shift] of shifts) {
  test(`an API and a worker whose clocks are five minutes ${direction} are named, and change neither the order of acceptance nor any wait`, async (t) => {
    const sluice = await startSluice(t, { workers: 0 })
    const { drained } = openQueue(t, sluice.settings)
    const shifted = preload('shift-clock', { CLOCK_SHIFT_MS: String(shift) })
    const [wrong, worker] = await Promise.all([
      sluice.startApi(shifted),
      sluice.startWorker(shifted),
    ])
    const externalId = randomUUID()
    const posted: Posted[] = []
    const began = Date.now()
    for (let post = 0; post < POSTS; post++) {
      const url = post % 2 === 0 ? wrong.url : sluice.url
      posted.push(
        await postThread({ url, key: sluice.key }, aThread({ externalId, quotes: 2, from: post })),
      )
    }
    assert.deepEqual(statusesOf(posted), [200], posted.map(({ body }) => body.code).join())
    const source = await sluice.db.collection<SourceDocument>('sources').findOne({ externalId })
    assert(
      Math.abs((source?.acceptedAt.getTime() ?? 0) - began) < TOLERANCE_MS,
      `accepted at ${source?.acceptedAt}`,
    )

    const expired = await createKey(sluice.db, { tenant: 'acme', name: 'expired' })
    const expiresAt = new Date(Date.now() - 60_000)
    await sluice.db.collection('keys').updateOne({ name: 'expired' }, { $set: { expiresAt } })
    const { status } = await postThread({ url: wrong.url, key: expired.key }, aThread())
    assert.equal(status, 403)

    worker.signal('SIGSTOP')
    const waited = await postThread(
      { url: wrong.url, key: sluice.key },
      aThread({ externalId }),
      'wait=1',
    )
    worker.signal('SIGCONT')
    assert.equal(waited.status, 202)
    assert(waited.ms > 900 && waited.ms < TOLERANCE_MS, `waited ${waited.ms} ms`)
    await drained()
    await assertStored(sluice.db, [...posted, waited])

    const { overview } = await openOperator(sluice)
    const { verdict, processes, lastMinutes } = await until('all times of the worker', async () => {
      const status = await overview()
      return status.lastMinutes?.stored.updated === POSTS ? status : undefined
    })
    const named = new RegExp(
      `^The clock of the .* is [45] min ${direction}( of)? Redis’s, and 1 more differ`,
    )
    assert(
      verdict?.some(({ text }) => named.test(text)),
      JSON.stringify(verdict),
    )
    const isNow = (moment: string) => Math.abs(Date.parse(moment) - began) < 120_000
    assert(processes.every(({ startedAt }) => isNow(startedAt)))
    const { p50 = 0, p99 = 0 } = lastMinutes.queueTime ?? {}
    assert(p50 > 0 && p99 > 0.5 && p99 < 60, `${p50}, ${p99}`)
  })
}
