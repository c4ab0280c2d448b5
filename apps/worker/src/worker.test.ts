import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { createLogger, openMetrics } from '@sluice/ops'
import { PartlyStoredError } from '@sluice/queue'
import { RefusedWriteError, StoreAwayError, type StoreRequest } from '@sluice/store'
import { sourceIdOf } from '@sluice/store/ids'
import { afterEach, beforeEach, describe, test, vi } from 'vitest'
import type { IngestRequest } from './choose-batch.ts'
import { workerMetrics } from './metrics.ts'
import { createIngest, createWork, requestsOf } from './worker.ts'

const bounds = { documents: 100, characters: 10_000 }
const { metrics } = openMetrics('test', workerMetrics)

function request(id: string): IngestRequest {
  const thread = { source: { service: 'slack' as const, externalId: id, title: id }, quotes: [{ text: 'five!' }] }
  const size = { documents: 2, characters: 5 }
  return { id, tenant: 'acme', stamp: 1, redelivered: false, suspect: false, lane: 'bulk', thread, ...size }
}

/** Stores nothing: each call fails with the next error, and notes the requests and the bytes of each probe. */
function failing(errors: Error[], isBack: boolean) {
  const calls: string[][] = []
  const probed: number[] = []
  const ingest = createIngest({
    async storeBatch(requests: readonly StoreRequest[]) {
      calls.push(requests.map(({ id }) => id))
      throw errors.shift() ?? new Error('no more errors')
    },
    async probeStore(bytes) {
      probed.push(bytes)
      if (!isBack) throw new Error('no majority')
    },
    bounds,
    metrics,
  })
  return { ingest: (ids: string[]) => Promise.all(ids.map((id) => ingest.ingest(request(id)))), calls, probed }
}

const awayFor = (reason: string) => ({ away: true, reason: `MongoDB is away: ${reason}` })
const slow = () => new StoreAwayError(new Error('slow'), true)
const full = () => new StoreAwayError(new Error('disk full'), false)

describe('a batch that cannot be stored', () => {
  test('is put back whole, and not tried in parts, if the error concerns the whole store', async () => {
    const { ingest, calls, probed } = failing([full()], true)
    assert.deepEqual(await ingest(['a', 'b', 'c']), Array(3).fill(awayFor('disk full')))
    assert.deepEqual([calls, probed], [[['a', 'b', 'c']], []])
  })

  test('is put back after a time-out, if the store does not commit a probe as large as the batch', async () => {
    const { ingest, calls, probed } = failing([slow()], false)
    assert.deepEqual(await ingest(['a', 'b']), Array(2).fill(awayFor('slow')))
    assert.deepEqual([calls, probed], [[['a', 'b']], [10]])
  })

  test('is tried in parts after a time-out, if the store commits the probe, and stops once the store is away', async () => {
    const { ingest, calls } = failing([slow(), new Error('too large'), new Error('too large'), full()], true)
    const [a, b, c, d] = await ingest(['a', 'b', 'c', 'd'])
    assert.deepEqual(a, { error: new Error('too large') })
    assert.deepEqual([b, c, d], Array(3).fill(awayFor('disk full')))
    assert.deepEqual(calls, [['a', 'b', 'c', 'd'], ['a', 'b'], ['a'], ['b']])
  })

  /** Stores a thousand threads but three, for which each batch fails. Returns the unstored ones, and the sizes of batches. */
  async function storeAllBut(unstorable: string[], errorOf: (refused: string[]) => Error) {
    const sizes: number[] = []
    const { ingest } = createIngest({
      async storeBatch(requests) {
        sizes.push(requests.length)
        const refused = requests.flatMap(({ id }) => (unstorable.includes(id) ? [id] : []))
        if (refused.length > 0) throw errorOf(refused)
        return new Map(requests.map(({ id }) => [id, { id } as never]))
      },
      probeStore: async () => {},
      bounds: { documents: 4_000, characters: 100_000 },
      metrics,
    })
    const tried = await Promise.all(Array.from({ length: 1_000 }, (_, at) => ingest(request(String(at)))))
    return { unstored: tried.flatMap((one, at) => ('error' in one ? [String(at)] : [])), sizes }
  }

  test('is tried without the requests that MongoDB refused', async () => {
    const errmsg = 'Document failed validation'
    const errorOf = (refused: string[]) => {
      const ids = refused.map((externalId) => `${sourceIdOf('acme', { service: 'slack', externalId })}a-quote`)
      return new RefusedWriteError({ code: 121, errmsg }, 'quotes', [ids[0] ?? '', ...ids])
    }
    const { unstored, sizes } = await storeAllBut(['7', '500', '700'], errorOf)
    assert.deepEqual(unstored, ['7', '500', '700'])
    assert.deepEqual(sizes, [1_000, 997, 3, 2, 1, 1, 1])
  })

  test('is tried in halves if the error does not say which requests are at fault', async () => {
    const { unstored, sizes } = await storeAllBut(['7', '500', '700'], () => new Error('too large'))
    assert.deepEqual(unstored, ['7', '500', '700'])
    assert.ok(sizes.length <= 1 + 3 * 2 * 10, `${sizes.length} batches`)
  })
})

test('the threads of a job share its stamp, but those of one source have stamps in their order', () => {
  const threads = ['a', 'b', 'a', 'c', 'a'].map((id) => request(id).thread)
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
  const { thread } = request('a')
  const work = createWork({
    ingest: { ingest: async () => ({ error: new Error('no') }) },
    putBack: () => ({ away: true }),
    metrics,
    log: createLogger('test', 'silent'),
  })
  await assert.rejects(work({ ...aJob([thread]), enqueuedAt, redelivered }), PartlyStoredError)
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

describe('the pause after a batch', () => {
  /** Stores batches that take some ms. Returns whether the worker is ready at once, and how many ms after the last write. */
  async function readyAfter(ids: string[], tookMs: number) {
    let since = 0
    const ingest = createIngest({
      async storeBatch(batch, onLastWrite) {
        await delay(tookMs)
        since = performance.now()
        onLastWrite?.()
        return new Map(batch.map(({ id }) => [id, { thread: request(id).thread, outcomes: [] } as never]))
      },
      probeStore: async () => {},
      bounds,
      metrics,
    })
    await Promise.all(ids.map((id) => ingest.ingest(request(id))))
    const ready = ingest.ready('bulk').then(() => true)
    const atOnce = await Promise.race([ready, new Promise<false>((resolve) => setImmediate(resolve, false))])
    await ready
    return { atOnce, ms: performance.now() - since }
  }

  test('lasts three quarters of the time that the batch took, and at most 12 ms', async () => {
    assert.ok((await readyAfter(['a', 'b'], 8)).ms >= 4)
    const { ms } = await readyAfter(['a', 'b'], 1_000)
    // Three quarters would be 750.
    assert.ok(ms >= 10 && ms < 700, `${ms} ms`)
  })

  test('does not exist for a single request', async () => {
    assert.equal((await readyAfter(['a'], 20)).atOnce, true)
  })
})

describe('a batch that does not end', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
  afterEach(() => void vi.useRealTimers())

  test('counts as stuck after two minutes', async () => {
    const stored = Promise.withResolvers<Map<string, never>>()
    const begun = Promise.withResolvers<void>()
    const ingest = createIngest({
      storeBatch: () => {
        begun.resolve()
        return stored.promise
      },
      probeStore: async () => {},
      bounds,
      metrics,
    })
    void ingest.ingest(request('a')).catch(() => {})
    await begun.promise
    vi.advanceTimersByTime(119_000)
    assert.equal(ingest.findStuck(), undefined)
    vi.advanceTimersByTime(2_000)
    assert.equal(ingest.findStuck(), 'a batch has been running for 121 s')
    stored.reject(new Error('given up'))
  })
})
