import assert from 'node:assert/strict'
import {
  createBatchStore,
  PausedTooLongError,
  type PostRequest,
  repairSources,
} from '@sluice/store'
import { sourceIdOf } from '@sluice/store/ids'
import fc from 'fast-check'
import { describe, it } from 'vitest'
import { scale } from '../support/scale.ts'
import { history, requestOf, thread, tinyThread } from './support/histories.ts'
import { Death, type Fate, mortal } from './support/mortal.ts'
import { clockAhead, hurried, openStore } from './support/open-store.ts'
import { openTokens } from './support/open-tokens.ts'
import { expectedThreads } from './support/oracle.ts'
import { storeAll, storeOnce } from './support/store-all.ts'
import { visible } from './support/visible.ts'

const WORKERS = 3

/** A token this old is stale: the next request sums the source. */
const STALE_MS = 10_000
/** A repair removes a token this old. */
const EXPIRED_MS = 120_000

const fate: fc.Arbitrary<Fate> = fc.record({
  atWrite: fc.integer({ min: 1, max: 6 }),
  share: fc.constantFrom(0, 0.5, 1),
})

/**
 * What one worker does in turn: batches of requests (by place), some of which it does not survive.
 */
const shift = fc.array(
  fc.record({
    places: fc.uniqueArray(fc.nat(7), { minLength: 1, maxLength: 4 }),
    fate: fc.option(fate, { nil: undefined, freq: 3 }),
  }),
  { minLength: 1, maxLength: 4 },
)
type Shift = typeof shift extends fc.Arbitrary<infer Value> ? Value : never
const shifts = fc.array(shift, { minLength: WORKERS, maxLength: WORKERS })

describe('the real store, with several workers at once', () => {
  const { db, commands, sources, quotes: quotesOf } = openStore('laws')
  let runs = 0

  /** Each run has a tenant of its own, so that all share one database. */
  function asTenant(requests: PostRequest[]): PostRequest[] {
    const tenant = `tenant-${runs++}`
    return requests.map((request) => ({ ...request, tenant, id: `${tenant}-${request.id}` }))
  }

  /** Flags the requests of which an earlier delivery began, as the queue does. */
  function createDeliveries() {
    const begun = new Set<string>()
    return (requests: PostRequest[]): PostRequest[] => {
      const delivered = requests.map((request) => ({
        ...request,
        redelivered: begun.has(request.id),
      }))
      for (const { id } of requests) begun.add(id)
      return delivered
    }
  }

  /** Runs all workers at once. Returns the ids of the requests that were answered. */
  async function work(
    requests: PostRequest[],
    workers: Shift[],
    { deliver = createDeliveries(), ends = false } = {},
  ): Promise<Set<string>> {
    const done = new Set<string>()
    async function runShift(shift: Shift): Promise<void> {
      const lasting = createBatchStore(mortal(commands, undefined), hurried)
      for (const { places, fate } of shift) {
        const batch = deliver(places.flatMap((place) => requests[place] ?? []))
        const worker =
          fate === undefined ? lasting : createBatchStore(mortal(commands, fate), hurried)
        await survive(async () => {
          for (const id of (await storeAll(worker, batch)).keys()) done.add(id)
          if (ends && fate !== undefined) await worker.settle()
        })
      }
      if (ends) await lasting.settle()
    }
    await Promise.all(workers.map(runShift))
    return done
  }

  async function survive(act: () => Promise<void>): Promise<void> {
    try {
      await act()
    } catch (error) {
      // A process that was paused for too long has its requests delivered again, as one that died
      // has.
      if (!(error instanceof Death || error instanceof PausedTooLongError)) throw error
    }
  }

  async function stored(request: PostRequest) {
    const id = sourceIdOf(request.tenant, request.thread.source)
    const source = await sources.findOne({ _id: id })
    const quotes = await quotesOf.find({ sourceId: id }).toArray()
    return { source, quotes }
  }

  async function assertAgreement(request: PostRequest) {
    const { source, quotes } = await stored(request)
    assert(source !== null)
    const sum = quotes.reduce((total, quote) => total + quote.wordCount, 0)
    assert.deepEqual(
      { words: source.wordCount, quotes: source.quoteCount },
      { words: sum, quotes: quotes.length },
    )
  }

  for (const [kind, threads] of [
    ['many fields', thread()],
    ['repeats', tinyThread()],
  ] as const) {
    it(`ends like each request once, in order, after any interleaving, death and redelivery (laws 1, 3 and 4; requests: ${kind})`, async () => {
      await fc.assert(
        fc.asyncProperty(history(threads), shifts, async (made, workers) => {
          const requests = asTenant(made)
          const deliver = createDeliveries()
          const done = await work(requests, workers, { deliver })
          // Each is delivered until one delivery survives, as the queue does.
          const rest = requests.filter(({ id }) => !done.has(id))
          await storeOnce(commands, deliver(rest), hurried)
          const [first] = requests
          assert(first !== undefined)
          const before = (await stored(first)).source
          assert(before !== null)
          // A delivery may have died although another one was answered, or a process after its
          // answer: see ADR 2.
          if ((await openTokens(db, before)).length > 0)
            await storeOnce(commands, deliver(requests), clockAhead(STALE_MS, hurried))
          const { source, quotes } = await stored(first)
          assert(source !== null)
          assert.deepEqual(visible(source, quotes), [...expectedThreads(requests).values()][0])
        }),
        { numRuns: scale(20, 30), endOnFailure: true },
      )
    })
  }

  it('has exact totals after the next request that follows a crash without redelivery (law 3)', async () => {
    await fc.assert(
      fc.asyncProperty(history(thread(), 4), shifts, thread(), async (made, workers, next) => {
        const requests = asTenant(made)
        await work(requests, workers)
        const [first] = requests
        assert(first !== undefined)
        const after: PostRequest = {
          ...first,
          id: `${first.id}-after`,
          stamp: 99_000_000,
          thread: next,
        }
        await storeOnce(commands, [after], clockAhead(STALE_MS, hurried))
        await assertAgreement(after)
      }),
      { numRuns: scale(20, 30), endOnFailure: true },
    )
  })

  it("has exact totals and no dead writer's token after a repair that follows a crash without redelivery (law 3)", async () => {
    let repaired = 0
    await fc.assert(
      fc.asyncProperty(history(thread(), 4), shifts, async (made, workers) => {
        const requests = asTenant(made)
        await work(requests, workers, { ends: true })
        const [first] = requests
        assert(first !== undefined)
        await repairSources(commands, { repair: true }, clockAhead(EXPIRED_MS, hurried))
        const { source, quotes } = await stored(first)
        // All workers may have died before they opened the source: then nothing is stored.
        if (source === null) return assert.deepEqual(quotes, [])
        await assertAgreement(first)
        assert.deepEqual(await openTokens(db, source), [])
        repaired++
      }),
      { numRuns: scale(8, 15), endOnFailure: true },
    )
    assert.ok(repaired > 0, 'no history left a source to repair')
  })

  it("keeps a dead writer's token in the source until its request is redelivered (law 3)", async () => {
    const threadOf = (text: string): PostRequest['thread'] => ({
      source: { service: 'slack', externalId: 'dead-writer', title: 'title' },
      quotes: [{ text }, { text: `${text} again` }],
    })
    const [first, second] = asTenant([requestOf(threadOf('one'), 1), requestOf(threadOf('two'), 2)])
    assert(first !== undefined && second !== undefined)
    await assert.rejects(storeOnce(mortal(commands, { atWrite: 2, share: 0.5 }), [first]), Death)
    await storeOnce(commands, [second], clockAhead(STALE_MS))
    const between = (await stored(second)).source
    assert(between !== null)
    assert.deepEqual(await openTokens(db, between), [first.id])
    assert.equal(between.quoteCount, 3)
    await storeOnce(commands, [{ ...first, redelivered: true }])
    const { source, quotes } = await stored(first)
    assert(source !== null)
    assert.deepEqual(
      { open: await openTokens(db, source), quotes: quotes.length },
      { open: [], quotes: 4 },
    )
    await assertAgreement(first)
  })

  it('answers created to exactly one of all requests for a document', async () => {
    await fc.assert(
      fc.asyncProperty(history(tinyThread()), shifts, async (made, workers) => {
        const requests = asTenant(made).map((request) => ({ ...request, redelivered: false }))
        const shares = workers.map((_, at) => requests.filter((_, place) => place % WORKERS === at))
        const answers = await Promise.all(
          shares.map((share) => storeOnce(mortal(commands, undefined), share, hurried)),
        )
        const answered = answers.flatMap((some) => [...some.values()])
        assert.equal(answered.filter(({ source }) => source.outcome === 'created').length, 1)
        const ids = answered.flatMap(({ quotes }) =>
          quotes.filter(({ outcome }) => outcome === 'created').map(({ id }) => id),
        )
        const first = requests[0]
        assert(first !== undefined)
        assert.deepEqual(ids.sort(), (await stored(first)).quotes.map(({ _id }) => _id).sort())
      }),
      { numRuns: scale(14, 20), endOnFailure: true },
    )
  })
})
