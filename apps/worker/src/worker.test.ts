import assert from 'node:assert/strict'
import { createLogger, openMetrics } from '@sluice/process'
import { PartlyStoredError } from '@sluice/queue'
import type { StoreRequest } from '@sluice/store'
import { test } from 'vitest'
import { workerMetrics } from './metrics.ts'
import { createWork, requestsOf } from './worker.ts'

const { metrics } = openMetrics('test', workerMetrics)

const aThread = (externalId: string) => ({
  source: { service: 'slack' as const, externalId, title: externalId },
  quotes: [{ text: 'five!' }],
})

test('the threads of a job share its stamp, but those of one source have stamps in their order', () => {
  const threads = ['a', 'b', 'a', 'c', 'a'].map(aThread)
  const job = { ...aJob(threads), enqueuedAt: 0, redelivered: false }
  assert.deepEqual(
    requestsOf(job).map(({ stamp }) => stamp),
    [1, 1, 3, 1, 5],
  )
})

function aJob(threads: StoreRequest['thread'][]) {
  const data = { tenant: 'acme', stamp: 1, requestId: 'r', retained: false, threads }
  return { id: 'j', name: 'slack/a', lane: 'bulk' as const, data, digests: [], attempt: 1, suspect: false }
}

/** Works on a job that was enqueued at this time, and that fails. Returns count and sum of the times in queue so far. */
async function failEnqueued(enqueuedAt: number, redelivered: boolean) {
  const work = createWork({
    ingest: { ingest: async () => ({ error: new Error('no') }) },
    putBack: () => ({ away: true }),
    metrics,
    log: createLogger('test', 'silent'),
  })
  await assert.rejects(work({ ...aJob([aThread('a')]), enqueuedAt, redelivered }), PartlyStoredError)
  const { values } = await metrics.queueTime.get()
  const sample = (end: string) => values.find(({ metricName }) => metricName?.endsWith(end))?.value ?? 0
  return { count: sample('_count'), sum: sample('_sum') }
}

test('time in queue is that of the first try: a job that is delivered again does not count', async () => {
  for (const redelivered of [false, true]) assert.equal((await failEnqueued(Date.now(), redelivered)).count, 1)
})

test('time in queue is never negative, though the clock of Redis is ahead', async () => {
  const { sum } = await failEnqueued(Date.now(), false)
  assert.equal((await failEnqueued(Date.now() + 60_000, false)).sum, sum)
})

test('a request is kept apart after a failed try, and alone after a crash', () => {
  const apartOf = (more: object) => {
    const [request] = requestsOf({ ...aJob([aThread('a')]), enqueuedAt: 0, redelivered: true, ...more })
    return request?.apart
  }
  assert.equal(apartOf({}), undefined)
  assert.equal(apartOf({ attempt: 2 }), Number.POSITIVE_INFINITY)
  assert.equal(apartOf({ attempt: 2, suspect: true }), 1)
  // It was retried by hand.
  assert.equal(apartOf({ suspect: true }), 1)
})
