import assert from 'node:assert/strict'
import {
  inputThread,
  isLive,
  type PostRequest,
  planThread,
  type QuoteDocument,
  type SourceDocument,
} from '@sluice/store'
import fc from 'fast-check'
import { it } from 'vitest'
import { scale } from '../support/scale.ts'
import { history, thread, tinyThread } from './support/histories.ts'
import { expectedThreads, words } from './support/oracle.ts'
import { visible } from './support/visible.ts'

const RUNS = { numRuns: scale(1_000, 3_000) }

/** A store that writes all of a plan, as storeBatch does if no other process writes. */
class Memory {
  source: SourceDocument | undefined
  readonly quotes = new Map<string, QuoteDocument>()
  writes = 0

  /**
   * With `tear`, the process dies after that share of the quote writes, before the source is
   * committed or the watermark raised.
   */
  process(batch: PostRequest[], tear?: number) {
    const requests = batch.map(inputThread).sort((one, other) => one.stamp - other.stamp)
    const plan = planThread(
      { ...(this.source && { source: this.source }), quotes: this.quotes },
      requests,
    )
    const { quoteWrites } = plan
    const planned = plan.source.document
    assert(isLive(planned))
    const mine = requests.map(({ id }) => ({
      request: id,
      since: new Date(),
      writer: 'one',
      batch: 1,
    }))
    const isMine = ({ request }: { request: string }) => requests.some(({ id }) => id === request)
    const before = this.source?.meta.tokens ?? []
    const others = before.filter((token) => !isMine(token))
    const opened = this.source && !this.isFinal(plan, before.some(isMine)) ? this.source : planned
    if (quoteWrites.length > 0 || this.source === undefined)
      this.source = { ...opened, meta: { ...opened.meta, tokens: [...others, ...mine] } }
    const torn = tear === undefined ? quoteWrites.length : Math.floor(tear * quoteWrites.length)
    for (const { document } of quoteWrites.slice(0, torn)) {
      this.quotes.set(document._id, { ...document, wordCount: words(document.text) })
    }
    this.writes = quoteWrites.length + Number(plan.source.advanced || plan.source.changed)
    if (tear !== undefined) return undefined
    const all = [...this.quotes.values()]
    const { tokens: _, ...meta } = planned.meta
    const wordCount = all.reduce((sum, quote) => sum + quote.wordCount, 0)
    const left = others.length > 0 && { tokens: others }
    this.source = {
      ...planned,
      wordCount,
      quoteCount: all.length,
      meta: { ...meta, ...left },
    }
    return plan.outcomes
  }

  /** @param isToSum a token of an earlier delivery is still in the source. */
  private isFinal(
    { source, quoteWrites }: ReturnType<typeof planThread>,
    isToSum: boolean,
  ): boolean {
    if (isToSum) return false
    return quoteWrites.length === 0 || this.source?.meta.cover === source.document.meta.cover
  }

  shown() {
    assert(this.source !== undefined)
    return visible(this.source, this.quotes.values())
  }
}

/**
 * Random numbers that decide how requests are delivered: in which order, how many together, which
 * again, which deliveries die.
 */
const chances = fc.infiniteStream(fc.nat(999))

/**
 * Delivers each request at least once without a crash, in any order and grouping, some of them more
 * often. A delivery that dies is repeated at any later time.
 */
function deliver(memory: Memory, requests: PostRequest[], chance: () => number): void {
  const again = requests.filter(() => chance() < 300)
  const pending = [...requests, ...again].map((request) => ({ request, at: chance() }))
  const begun = new Set<string>()
  let deaths = 0
  while (pending.length > 0) {
    pending.sort((one, other) => one.at - other.at)
    const fetched = pending.splice(0, 1 + (chance() % 3))
    const batch = [...new Set(fetched.map(({ request }) => request))].map((request) => ({
      ...request,
      redelivered: begun.has(request.id),
    }))
    for (const { id } of batch) begun.add(id)
    const dies = deaths < 5 && chance() < 200
    memory.process(batch, dies ? chance() / 999 : undefined)
    if (!dies) continue
    deaths += 1
    pending.push(...fetched.map(({ request, at }) => ({ request, at: at + chance() })))
  }
}

for (const [kind, threads] of [
  ['many fields', thread()],
  ['repeats', tinyThread()],
] as const) {
  it(`any order, repetition and crash ends like each request once, in order (law 1; requests: ${kind})`, () => {
    fc.assert(
      fc.property(history(threads), chances, (requests, stream) => {
        const memory = new Memory()
        deliver(memory, requests, () => stream.next().value ?? 0)
        assert.deepEqual(memory.shown(), [...expectedThreads(requests).values()][0])
      }),
      { numRuns: scale(2_000, 8_000) },
    )
  })
}

it('a request that is posted again, with nothing in between, changes nothing, answers unchanged and writes little (law 2)', () => {
  fc.assert(
    fc.property(history(), (requests) => {
      const memory = new Memory()
      for (const request of requests) memory.process([request])
      const last = requests.at(-1)
      assert(last !== undefined)
      const before = memory.shown()
      const outcomes = memory.process([{ ...last, id: 'again', stamp: last.stamp + 1_000_000 }])
      assert.deepEqual(memory.shown(), before)
      assert.deepEqual(outcomes, [
        { source: 'unchanged', quotes: last.thread.quotes.map(() => 'unchanged') },
      ])
      const covered = memory.quotes.size === last.thread.quotes.length && requests.length === 1
      if (covered) assert(memory.writes <= 1, `${memory.writes} writes`)
    }),
    RUNS,
  )
})

it('of all requests for one document exactly one answers created: the first of a batch', () => {
  fc.assert(
    fc.property(history(), fc.integer({ min: 1, max: 8 }), (requests, size) => {
      const memory = new Memory()
      const outcomes: string[] = []
      for (let at = 0; at < requests.length; at += size) {
        outcomes.push(
          ...(memory.process(requests.slice(at, at + size)) ?? []).map(({ source }) => source),
        )
      }
      assert.deepEqual(
        outcomes.map((outcome) => outcome === 'created'),
        requests.map((_, at) => at === 0),
      )
    }),
    RUNS,
  )
})
