import type { Thread } from '@sluice/contract'
import type { StoreRequest } from '@sluice/store'
import fc from 'fast-check'
import { history as requestsOf, thread, tinyThread } from '../support/histories.ts'
import type { Fault, SlowWrite } from './simulation.ts'

// Random histories: requests in the order of acceptance, the processes that store them, and what goes wrong.

/** One delivery of some requests to a process, which stores them in one batch. */
export interface Delivery {
  /** Positions in the order of acceptance. */
  places: number[]
  /** The time that passes before, in ms: enough to settle the batches before it, or none. */
  after: number
  /** Redis has lost the record of earlier deliveries. */
  forgets: boolean
}

export interface WorkerPlan {
  /** What the process's clock is off by, in ms. */
  skew: number
  faults: Fault[]
  slowWrites: SlowWrite[]
  /** The process has an older version of the store, which inserts quotes without positions. */
  isOld: boolean
  /** Batches that the process stores at the same time, each lane one after the other. */
  lanes: Delivery[][]
}

export interface RepairPlan {
  /** What the process's clock is off by, in ms. */
  skew: number
  /** The time that passes before, in ms. */
  after: number
  slowWrites: SlowWrite[]
}

export interface History {
  requests: StoreRequest[]
  workers: WorkerPlan[]
  /** Repairs that run at the same time. */
  repairs: RepairPlan[]
  /** Positions of requests that fail for good, unless a delivery stores them. */
  hopeless: number[]
  choices: number[]
}

/** The machines' clocks may differ by so many ms. */
const MAX_SKEW = 20_000

const skew = fc.constantFrom(0, 0, -MAX_SKEW, MAX_SKEW)

const fault: fc.Arbitrary<Fault> = fc.record({
  atWrite: fc.integer({ min: 1, max: 8 }),
  kind: fc.constantFrom('death', 'death', 'error', 'late'),
  share: fc.constantFrom(0, 1, 2, 5, 255),
})

const slowWrite: fc.Arbitrary<SlowWrite> = fc.record({
  atWrite: fc.integer({ min: 1, max: 8 }),
  what: fc.constantFrom('command', 'reply'),
  steps: fc.constantFrom(6, 12, 24, 48),
})

const slowWrites = fc.array(slowWrite, { maxLength: 2 })

const delivery: fc.Arbitrary<Delivery> = fc.record({
  places: fc.uniqueArray(fc.nat(5), { minLength: 1, maxLength: 3 }),
  after: fc.constantFrom(0, 0, 1_000),
  forgets: fc.boolean(),
})

const worker: fc.Arbitrary<WorkerPlan> = fc.record({
  skew,
  isOld: fc.constantFrom(false, false, false, false, false, true),
  faults: fc.oneof({ weight: 2, arbitrary: fc.constant<Fault[]>([]) }, fc.array(fault, { minLength: 1, maxLength: 2 })),
  slowWrites,
  lanes: fc.array(fc.array(delivery, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 2 }),
})

const repair: fc.Arbitrary<RepairPlan> = fc.record({
  skew,
  after: fc.constantFrom(0, 25_000, 100_000, 150_000),
  slowWrites,
})

/** Histories in which several processes meet, and much goes wrong. */
function meetings(requests: fc.Arbitrary<StoreRequest[]>): fc.Arbitrary<History> {
  return fc.record({
    requests,
    workers: fc.array(worker, { minLength: 1, maxLength: 3, size: 'max' }),
    repairs: fc.oneof(
      { weight: 3, arbitrary: fc.constant<History['repairs']>([]) },
      fc.array(repair, { minLength: 1, maxLength: 2 }),
    ),
    hopeless: fc.oneof(
      { weight: 3, arbitrary: fc.constant<number[]>([]) },
      fc.uniqueArray(fc.nat(5), { maxLength: 2 }),
    ),
    choices: fc.array(fc.nat(29), { maxLength: 150, size: 'max' }),
  })
}

/** Histories in which one process stores one request after the other, in any order, and settles each. Nothing goes wrong. */
function turns(requests: fc.Arbitrary<StoreRequest[]>): fc.Arbitrary<History> {
  const places = fc.array(fc.nat(5), { minLength: 4, maxLength: 8 })
  return fc.tuple(requests, places).map(([some, order]) => {
    const lane = order.map((place): Delivery => ({ places: [place], after: 1_000, forgets: false }))
    const one: WorkerPlan = { skew: 0, isOld: false, faults: [], slowWrites: [], lanes: [lane] }
    return { requests: some, workers: [one], repairs: [], hopeless: [], choices: [] }
  })
}

/** A thread of appends: no quote is given twice but by a repost. */
function appends(): fc.Arbitrary<Thread> {
  const quote = fc.integer({ min: 1, max: 40 }).map((n) => ({ externalId: `q${n}`, text: 'two words' }))
  const quotes = fc.uniqueArray(quote, { minLength: 1, maxLength: 4, selector: ({ externalId }) => externalId })
  const source = fc.record({
    service: fc.constant('slack' as const),
    externalId: fc.constantFrom('t1', 't1', 't2'),
    title: fc.constantFrom('title', 'another title'),
  })
  return fc.record({ source, quotes })
}

/** The kinds of histories. */
export const HISTORY_KINDS = {
  'edits of many fields': meetings(requestsOf(thread(['t1']), 6)),
  'reposts of whole threads': meetings(requestsOf(tinyThread(), 6)),
  'appends to two threads': meetings(requestsOf(appends(), 6)),
  'reposts in any order': turns(requestsOf(tinyThread(), 6)),
}
