import assert from 'node:assert/strict'
import { createDurations } from '@sluice/boot/durations'
import { createLogger, openMetrics } from '@sluice/process'
import { type FetchedJob, PartlyStoredError, type ThreadReceipt } from '@sluice/queue'
import { test } from 'vitest'
import { createSuppressionCopy, type SuppressionCopy } from './deletions.ts'
import type { Ingested } from './ingest.ts'
import { createNoteTimes, createWork, requestsOf } from './job.ts'
import { workerMetrics } from './metrics.ts'

const NO_DELETIONS = { name: async () => {}, record: async () => {}, purge: async () => {} }
const NO_SUPPRESSIONS: Pick<SuppressionCopy, 'mark'> = { mark: (_, requests) => requests }

const aThread = (externalId: string) => ({
  source: { service: 'slack' as const, externalId, title: externalId },
  quotes: [{ text: 'five!' }],
})

test('the threads of a job share its stamp, but those of one source have stamps in their order', () => {
  const threads = ['a', 'b', 'a', 'c', 'a'].map(aThread)
  const job = { ...aJob(threads), waitsSince: 0, suppressions: '', redelivered: false }
  assert.deepEqual(
    requestsOf(job).map(({ stamp }) => stamp),
    [1, 1, 3, 1, 5],
  )
})

test('threads that were stored before a retry are not stored again, and keep their receipts', async () => {
  const { metrics } = openMetrics('test', workerMetrics)
  const receipt = {
    source: { outcome: 'created', wordCount: 9, createdAt: 'then' },
    outcomes: 'c',
  } as const
  /**
   * Runs a job whose threads a and c were stored before. Returns what it throws or returns, and
   * what it stores.
   */
  async function retried(ingested: Ingested) {
    const stored: unknown[] = []
    const work = createWork({
      ingest: {
        async ingest({ id, stamp }) {
          stored.push([id, stamp])
          return ingested
        },
      },
      suppressions: NO_SUPPRESSIONS,
      deletions: NO_DELETIONS,
      noteLost: () => assert.fail('the store is there'),
      noteTimes: createNoteTimes(metrics, createDurations()),
      log: createLogger('test', 'silent'),
    })
    const receiptsBefore = [receipt, null, receipt]
    const job = {
      ...aJob(['a', 'a', 'c'].map(aThread)),
      waitsSince: 0,
      suppressions: '',
      redelivered: true,
      receiptsBefore,
    }
    return { stored, result: await work(job).catch((error: unknown) => error) }
  }
  const source = { outcome: 'updated', wordCount: 1, createdAt: 'now' } as const
  const fields = {
    ...aThread('a').source,
    description: null,
    id: 'a',
    status: 'TRANSCRIBED',
  } as const
  const completed = await retried({ answer: { source: { ...fields, ...source }, quotes: [] } })
  // The place in the order of acceptance is that of the second thread of its source.
  assert.deepEqual(completed.stored, [['j.1', 2]])
  assert.deepEqual(completed.result, { receipts: [receipt, { source, outcomes: '' }, receipt] })
  const { result } = await retried({ error: new Error('no') })
  assert(result instanceof PartlyStoredError)
  assert.deepEqual(result.receipts, [receipt, null, receipt])
  assert.deepEqual(
    result.failedThreads.map(({ place }) => place),
    [1],
  )
})

test('a deletion is stored with the stamp of its place, and its receipt is its answer', async () => {
  const { metrics } = openMetrics('test', workerMetrics)
  const deletes = { sourceId: 's' }
  const threads = [
    { deletes, name: { service: 'slack', externalId: 'a' } },
    { deletes: { ...deletes, quoteIds: ['q'] }, name: { service: 'slack', externalId: 'a' } },
  ]
  const [stored, purged]: [unknown[], unknown[]] = [[], []]
  const work = createWork({
    ingest: {
      async ingest({ stamp, ...request }) {
        stored.push([stamp, 'deletes' in request && request.deletes])
        return { answer: { outcome: 'deleted', quotes: 2 } }
      },
    },
    deletions: { ...NO_DELETIONS, purge: async (...args) => void purged.push(args) },
    suppressions: NO_SUPPRESSIONS,
    noteLost: () => assert.fail('the store is there'),
    noteTimes: createNoteTimes(metrics, createDurations()),
    log: createLogger('test', 'silent'),
  })
  const job = { ...aJob(threads), waitsSince: 0, suppressions: '', redelivered: false }
  const { receipts } = Object(await work(job))
  assert.deepEqual(stored, [
    [1, deletes],
    [2, { ...deletes, quoteIds: ['q'] }],
  ])
  const answer = { source: { id: 's', outcome: 'deleted', quotes: 2 } }
  assert.deepEqual(receipts, [answer, answer])
  assert.deepEqual(purged, [[job, requestsOf(job), receipts]])
})

test('a job whose deletions cannot be recorded is returned before anything is removed', async () => {
  const { metrics } = openMetrics('test', workerMetrics)
  const lost = new Error('returned')
  const work = createWork({
    ingest: { ingest: () => assert.fail('it is not recorded') },
    deletions: { ...NO_DELETIONS, record: () => Promise.reject(new Error('Redis is unavailable')) },
    suppressions: NO_SUPPRESSIONS,
    noteLost(_, { reason }) {
      assert.equal(reason, 'Redis is unavailable')
      throw lost
    },
    noteTimes: createNoteTimes(metrics, createDurations()),
    log: createLogger('test', 'silent'),
  })
  const threads = [{ deletes: { sourceId: 's' }, name: { service: 'slack', externalId: 'a' } }]
  const job = { ...aJob(threads), waitsSince: 0, suppressions: '', redelivered: false }
  await assert.rejects(work(job), lost)
})

test('a thread that was deleted while its job waited is not stored, and of another one not its deleted quotes', async () => {
  const { metrics } = openMetrics('test', workerMetrics)
  const whole = aThread('b')
  const threads: FetchedJob['data']['threads'] = [
    { ...aThread('a'), quotes: [], deleted: true },
    {
      ...whole,
      quotes: [{ text: '', deleted: true }, ...whole.quotes, { text: '', deleted: true }],
    },
  ]
  const stored: unknown[] = []
  const facts = {
    id: 'b',
    outcome: 'created',
    wordCount: 1,
    createdAt: 'now',
    status: 'TRANSCRIBED',
  } as const
  const source = { ...whole.source, description: null, ...facts }
  const quotes = whole.quotes.map((quote) => ({ ...quote, id: 'q', outcome: 'created' as const }))
  const work = createWork({
    ingest: {
      async ingest(request) {
        stored.push('thread' in request && request.thread)
        return { answer: { source, quotes } }
      },
    },
    suppressions: NO_SUPPRESSIONS,
    deletions: NO_DELETIONS,
    noteLost: () => assert.fail('the store is there'),
    noteTimes: createNoteTimes(metrics, createDurations()),
    log: createLogger('test', 'silent'),
  })
  const job = { ...aJob(threads), waitsSince: 0, suppressions: '', redelivered: false }
  job.data.purged = 2
  const { receipts } = Object(await work(job))
  assert.deepEqual(stored, [{ ...whole, quotes: whole.quotes }])
  const outcomes = receipts.map(({ source, outcomes }: ThreadReceipt) => [source.outcome, outcomes])
  assert.deepEqual(outcomes, [
    ['deleted', ''],
    ['created', 'dcd'],
  ])
})

function aJob(threads: FetchedJob['data']['threads']) {
  const data: FetchedJob['data'] = {
    tenant: 'acme',
    stamp: 1,
    requestId: 'r',
    retained: false,
    threads,
  }
  return {
    id: 'j',
    name: 'slack/a',
    lane: 'bulk' as const,
    data,
    digests: [],
    attempt: 1,
    quarantined: false,
  }
}

test('a job is in a batch as soon as it is fetched, so its lane does not fetch again meanwhile', async () => {
  const { metrics } = openMetrics('test', workerMetrics)
  const suppressions = createSuppressionCopy(async () => ({ key: 'k', idsOf: new Map() }))
  const job = { ...aJob([aThread('a')]), waitsSince: 0, suppressions: '', redelivered: false }
  let isInBatch = false
  const work = createWork({
    ingest: {
      async ingest() {
        isInBatch = true
        return { unavailable: true, reason: 'no', since: 0 }
      },
    },
    suppressions,
    deletions: NO_DELETIONS,
    noteLost: () => ({ unavailable: true }),
    noteTimes: createNoteTimes(metrics, createDurations()),
    log: createLogger('test', 'silent'),
  })
  // The worker's first job reads the list.
  await suppressions.mark(job, [])
  const working = work(job)
  assert(isInBatch)
  await working
})

/**
 * Works on a job of this age, which the store stores unless it is unavailable. Returns counts and
 * sums of all three times.
 */
async function workOn(ageMs: number, { redelivered = false, isUnavailable = false } = {}) {
  const { metrics } = openMetrics('test', workerMetrics)
  const durations = createDurations()
  const facts = {
    id: 'a',
    outcome: 'created',
    wordCount: 1,
    createdAt: 'now',
    status: 'TRANSCRIBED',
  } as const
  const answer = { source: { ...aThread('a').source, description: null, ...facts }, quotes: [] }
  const work = createWork({
    ingest: {
      ingest: async () =>
        isUnavailable ? { unavailable: true as const, reason: 'no', since: 0 } : { answer },
    },
    suppressions: NO_SUPPRESSIONS,
    deletions: NO_DELETIONS,
    noteLost: () => ({ unavailable: true }),
    noteTimes: createNoteTimes(metrics, durations),
    log: createLogger('test', 'silent'),
  })
  await work({
    ...aJob([{ ...aThread('a'), quotes: [] }]),
    waitsSince: performance.now() - ageMs,
    suppressions: '',
    redelivered,
  })
  const times = [metrics.queueTime, metrics.storeTime, metrics.totalTime].map(async (time) => {
    const { values } = await time.get()
    const sample = (end: string) =>
      values.find(({ metricName }) => metricName?.endsWith(end))?.value ?? 0
    return { count: sample('_count'), sum: sample('_sum') }
  })
  const [queue, store, total] = await Promise.all(times)
  assert(queue && store && total)
  return { queue, store, total, durations }
}

test('a job that was returned is timed from its acceptance until it is stored, and its parts sum up to that', async () => {
  assert.equal((await workOn(40_000, { isUnavailable: true })).total.count, 0)
  const { queue, store, total, durations } = await workOn(40_000, { redelivered: true })
  assert.deepEqual([queue.count, store.count, total.count], [1, 1, 1])
  assert(total.sum >= 40 && total.sum < 60, `${total.sum}`)
  assert(Math.abs(queue.sum + store.sum - total.sum) < 1e-6)
  assert.equal(durations.take().longest['longest:bulk'], total.sum)
})

test('no time is negative, though the clock of Redis was set back', async () => {
  assert.equal((await workOn(-60_000)).queue.sum, 0)
})

test('a request is kept apart after a failed attempt, and alone after a crash', () => {
  const apartOf = (more: object) => {
    const [request] = requestsOf({
      ...aJob([aThread('a')]),
      waitsSince: 0,
      suppressions: '',
      redelivered: true,
      ...more,
    })
    return request?.apart
  }
  assert.equal(apartOf({}), undefined)
  assert.deepEqual(apartOf({ attempt: 2 }), {})
  assert.deepEqual(apartOf({ attempt: 2, quarantined: true }), { most: 1 })
  // It was retried by hand.
  assert.deepEqual(apartOf({ quarantined: true }), { most: 1 })
})
