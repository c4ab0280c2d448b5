import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { openMetrics } from '@sluice/process'
import { CommandFailedError, RefusedWriteError, type StoreRequest } from '@sluice/store'
import { sourceIdOfRequest } from '@sluice/store/ids'
import { afterEach, beforeEach, describe, test, vi } from 'vitest'
import { createIngest, type IngestRequest } from './ingest.ts'
import { workerMetrics } from './metrics.ts'

const bounds = { documents: 100, characters: 10_000 }
const { metrics } = openMetrics('test', workerMetrics)

function request(id: string): IngestRequest {
  const thread = {
    source: { service: 'slack' as const, externalId: id, title: id },
    quotes: [{ text: 'five!' }],
  }
  const size = { documents: 2, characters: 5 }
  return { id, tenant: 'acme', stamp: 1, redelivered: false, lane: 'bulk', thread, ...size }
}

/**
 * Stores nothing: each call fails with the next error, and notes the requests and the bytes of each
 * probe.
 */
function failing(errors: Error[], isBack: boolean) {
  const calls: string[][] = []
  const probed: number[] = []
  const ingest = createIngest({
    async storeBatch(requests) {
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
  return {
    async ingest(ids: string[]) {
      const all = await Promise.all(ids.map((id) => ingest.ingest(request(id))))
      return all.map((one) =>
        'since' in one ? { ...one, since: one.since <= performance.now() } : one,
      )
    },
    calls,
    probed,
  }
}

const unavailableFor = (reason: string) => ({
  unavailable: true,
  reason: `MongoDB is unavailable: ${reason}`,
  since: true,
})
const slow = () => new CommandFailedError(new Error('slow'), false)
const tooLarge = () => new Error('too large')
const lost = () => new CommandFailedError(new Error('connection lost'), true)

describe('a batch that cannot be stored', () => {
  test('is returned whole, and not tried in parts, if the store is unavailable for certain', async () => {
    const { ingest, calls, probed } = failing([lost()], true)
    assert.deepEqual(
      await ingest(['a', 'b', 'c']),
      Array(3).fill(unavailableFor('connection lost')),
    )
    assert.deepEqual([calls, probed], [[['a', 'b', 'c']], []])
  })

  test('is returned after any error of a whole command, if the store does not commit a probe as large as the batch', async () => {
    const { ingest, calls, probed } = failing([slow()], false)
    assert.deepEqual(await ingest(['a', 'b']), Array(2).fill(unavailableFor('slow')))
    assert.deepEqual([calls, probed], [[['a', 'b']], [10]])
  })

  test('is tried in parts if the store commits the probe, and stops once the store is unavailable', async () => {
    const { ingest, calls } = failing([slow(), tooLarge(), tooLarge(), tooLarge(), lost()], true)
    const [a, b, c, d] = await ingest(['a', 'b', 'c', 'd'])
    assert.deepEqual(a, { error: tooLarge() })
    assert.deepEqual([b, c, d], Array(3).fill(unavailableFor('connection lost')))
    assert.deepEqual(calls, [['a', 'b', 'c', 'd'], ['a', 'b'], ['c', 'd'], ['a'], ['b']])
  })

  test('of one request is stored once more if the store commits the probe, then fails by the error of the command', async () => {
    const { ingest, calls, probed } = failing([slow(), slow()], true)
    assert.deepEqual(await ingest(['a']), [{ error: new Error('slow') }])
    assert.deepEqual({ calls, probed }, { calls: [['a'], ['a']], probed: [5, 5] })
  })

  /**
   * A store that fails for each batch with an unstorable request, and notes the ids of the batches.
   */
  function storeAllBut(
    unstorable: string[],
    errorOf: (refused: StoreRequest[]) => Error,
    bounds = WIDE,
  ) {
    const batches: string[][] = []
    const { ingest } = createIngest({
      async storeBatch(requests) {
        batches.push(requests.map(({ id }) => id))
        const refused = requests.filter(({ id }) => unstorable.includes(id))
        if (refused.length > 0) throw errorOf(refused)
        return new Map(requests.map(({ id }) => [id, { id } as never]))
      },
      probeStore: async () => {},
      bounds,
      metrics,
    })
    return { ingest, batches, sizes: () => batches.map(({ length }) => length) }
  }

  const thousand = Array.from({ length: 1_000 }, (_, at) => request(String(at)))
  const WIDE = { documents: 4_000, characters: 100_000 }

  /** The error of a command that could not write the first quotes of these threads. */
  function refusal(refused: StoreRequest[]): Error {
    const errors = refused.map((request) => {
      const error = { code: 121, errmsg: `refused ${request.id}` }
      return new RefusedWriteError(error, 'quotes', `${sourceIdOfRequest(request)}a-quote`)
    })
    const [first] = errors
    assert(first)
    first.sources = new Map(errors.flatMap(({ sources }) => [...sources]))
    return first
  }

  test('is tried in small parts, without the requests that MongoDB refused, each of which gets its own error', async () => {
    const { ingest, sizes } = storeAllBut(['7', '500', '700'], refusal)
    const tried = await Promise.all(thousand.map(ingest))
    const errors = tried.flatMap((one) =>
      'error' in one ? [one.error.message.replace(/ \(.*/, '')] : [],
    )
    assert.deepEqual(errors, ['refused 7', 'refused 500', 'refused 700'])
    assert.deepEqual(sizes(), [1_000, ...Array(19).fill(50), 47])
  })

  test('is tried in halves if the error does not say which requests are at fault', async () => {
    const { ingest, sizes } = storeAllBut(['7', '500', '700'], tooLarge)
    const tried = await Promise.all(thousand.map(ingest))
    const unstored = tried.flatMap((one, at) => ('error' in one ? [at] : []))
    assert.deepEqual(unstored, [7, 500, 700])
    assert.ok(sizes().length <= 1 + 3 * 2 * 10, `${sizes().length} batches`)
  })

  test('is tried in parts if several requests write the refused thread, because one alone may be at fault', async () => {
    const { ingest } = storeAllBut(['bad'], refusal)
    const tried = await Promise.all([
      ingest(request('bad')),
      ingest({ ...request('bad'), id: 'good' }),
    ])
    assert.deepEqual(
      tried.map((one) => Object.keys(one)),
      [['error'], ['answer']],
    )
  })

  test('is answered part by part: nobody waits until the last request at fault was found', async () => {
    const { ingest } = storeAllBut(['a', 'b'], tooLarge)
    const ended: string[] = []
    const ids = ['a', 'b', 'c', 'd']
    await Promise.all(ids.map((id) => ingest(request(id)).then(() => ended.push(id))))
    assert.deepEqual(ended, ['c', 'd', 'a', 'b'])
  })

  test('does not take with it those that arrive after it: requests of failed batches are kept apart', async () => {
    const { ingest, batches } = storeAllBut(['bad'], tooLarge)
    await Promise.all([
      ingest(request('new')),
      ingest({ ...request('bad'), apart: {} }),
      ingest(request('newer')),
    ])
    assert.deepEqual(batches, [['new', 'newer'], ['bad']])
  })
})

test('a post is fetched and stored while a deletion of the same lane removes quotes', {
  timeout: 5_000,
}, async () => {
  const removed = Promise.withResolvers<void>()
  const { ingest, ready } = createIngest({
    async storeBatch(requests) {
      if (requests.some((one) => 'deletes' in one)) await removed.promise
      return new Map(requests.map(({ id }) => [id, { id } as never]))
    },
    probeStore: async () => {},
    bounds,
    metrics,
  })
  const size = { documents: 1, characters: 0 }
  const deletion = { id: 'deletion', tenant: 'acme', stamp: 1, redelivered: false, ...size }
  const deleting = ingest({ ...deletion, lane: 'bulk', deletes: { sourceId: 's' } })
  await ready('bulk')
  assert.ok('answer' in (await ingest(request('post'))))
  removed.resolve()
  await deleting
})

test('a large request of a waiting caller is stored while one of an import is', {
  timeout: 5_000,
}, async () => {
  const imported = Promise.withResolvers<void>()
  const { ingest } = createIngest({
    async storeBatch(requests) {
      if (requests.some(({ id }) => id === 'of an import')) await imported.promise
      return new Map(requests.map(({ id }) => [id, { id } as never]))
    },
    probeStore: async () => {},
    bounds,
    metrics,
  })
  const characters = bounds.characters
  const importing = ingest({ ...request('of an import'), characters })
  assert.ok(
    'answer' in (await ingest({ ...request('of a caller'), characters, lane: 'interactive' })),
  )
  imported.resolve()
  await importing
})

describe('the pause after a batch', () => {
  /**
   * Stores batches that take some ms. Returns whether the worker is ready at once, and how many ms
   * after the last write.
   */
  async function readyAfter(ids: string[], tookMs: number) {
    let since = 0
    const ingest = createIngest({
      async storeBatch(batch, onLastWrite) {
        await delay(tookMs)
        since = performance.now()
        onLastWrite?.()
        return new Map(batch.map(({ id }) => [id, { id } as never]))
      },
      probeStore: async () => {},
      bounds,
      metrics,
    })
    await Promise.all(ids.map((id) => ingest.ingest(request(id))))
    const ready = ingest.ready('bulk').then(() => true)
    const atOnce = await Promise.race([
      ready,
      new Promise<false>((resolve) => setImmediate(resolve, false)),
    ])
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

  test('runs until the probe after its time-out has ended, so that heartbeats go on to report that MongoDB hangs', async () => {
    const probed = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    const ingest = createIngest({
      storeBatch: () => {
        vi.advanceTimersByTime(10_000)
        return Promise.reject(slow())
      },
      probeStore: () => {
        begun.resolve()
        return probed.promise
      },
      bounds,
      metrics,
    })
    const ingested = ingest.ingest(request('a'))
    await begun.promise
    assert(ingest.runningMs() >= 10_000)
    probed.reject(new Error('no answer'))
    assert('unavailable' in (await ingested))
    assert.equal(ingest.runningMs(), 0)
  })
})
