import type { Thread } from '@sluice/contract'
import type { DeleteRequest, PostRequest, StoreRequest } from '@sluice/store'
import { quoteIdsOf, sourceIdOf } from '@sluice/store/ids'
import fc from 'fast-check'
import { requestOf, history as requestsOf, thread, tinyThread } from '../support/histories.ts'
import type { Break, Conflict, Disturbance, Fault } from './process.ts'
import type { Mishaps } from './simulation.ts'

// Random histories: requests in the order of acceptance, the processes that store them, and what
// goes wrong.

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
  /** Batches that the process stores at the same time, each lane one after the other. */
  lanes: Delivery[][]
}

export interface RepairPlan {
  /** What the process's clock is off by, in ms. */
  skew: number
  /** The time that passes before, in ms. */
  after: number
  faults: Disturbance[]
}

export interface History extends Mishaps {
  requests: StoreRequest[]
  workers: WorkerPlan[]
  /** Repairs that run at the same time. */
  repairs: RepairPlan[]
  /** Positions of requests that fail for good, unless a delivery stores them. */
  hopeless: number[]
  choices: number[]
  writesPerCommand: number
  /** Commands take time, and nobody may wait for longer than `LONGEST_WAIT_MS`. */
  isTimed: boolean
  /** The engine locks each document that a command writes until the command ends. */
  locks: boolean
}

/** The machines' clocks may differ by this number of ms. */
const MAX_SKEW = 20_000

const skew = fc.constantFrom(0, 0, -MAX_SKEW, MAX_SKEW)

const atWrite = fc.integer({ min: 1, max: 8 })

const broken: fc.Arbitrary<Break> = fc.record({
  atWrite,
  kind: fc.constantFrom('death', 'death', 'error'),
  share: fc.constantFrom(0, 1, 2, 5, 255),
  rest: fc.constantFrom('late', 'lost'),
})

const disturbance: fc.Arbitrary<Disturbance> = fc.record({
  atWrite,
  kind: fc.constantFrom('slow command', 'slow reply', 'twice'),
  steps: fc.constantFrom(6, 12, 24, 48),
})

const conflict: fc.Arbitrary<Conflict> = fc.record({
  atWrite,
  kind: fc.constant('conflict'),
  share: fc.constantFrom(0, 1, 2, 5, 255),
})

const disturbances = fc.array(disturbance, { maxLength: 2 })

/** Few histories have such a mishap, so that most of them are about other things. */
const seldom = <Mishap>(mishap: fc.Arbitrary<Mishap>) =>
  fc.oneof({ weight: 7, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: mishap })

const delivery: fc.Arbitrary<Delivery> = fc.record({
  places: fc.uniqueArray(fc.nat(5), { minLength: 1, maxLength: 3 }),
  after: fc.constantFrom(0, 0, 1_000),
  forgets: fc.boolean(),
})

const worker: fc.Arbitrary<WorkerPlan> = fc.record({
  skew,
  faults: fc
    .tuple(
      fc.oneof(
        { weight: 2, arbitrary: fc.constant<Break[]>([]) },
        fc.array(broken, { minLength: 1, maxLength: 2 }),
      ),
      disturbances,
      fc.array(conflict, { maxLength: 1 }),
    )
    .map((both): Fault[] => both.flat()),
  lanes: fc.array(fc.array(delivery, { minLength: 1, maxLength: 3 }), {
    minLength: 1,
    maxLength: 2,
  }),
})

const repair: fc.Arbitrary<RepairPlan> = fc.record({
  skew,
  after: fc.constantFrom(0, 25_000, 100_000, 150_000),
  faults: disturbances,
})

const MOST_WORKERS = 3

/** Histories in which several processes meet, and much goes wrong. */
function meetings(requests: fc.Arbitrary<StoreRequest[]>, minWorkers = 1): fc.Arbitrary<History> {
  return fc.record({
    requests,
    workers: fc.array(worker, { minLength: minWorkers, maxLength: MOST_WORKERS, size: 'max' }),
    repairs: fc.oneof(
      { weight: 3, arbitrary: fc.constant<History['repairs']>([]) },
      fc.array(repair, { minLength: 1, maxLength: 2 }),
    ),
    hopeless: fc.oneof(
      { weight: 3, arbitrary: fc.constant<number[]>([]) },
      fc.uniqueArray(fc.nat(5), { maxLength: 2 }),
    ),
    loss: seldom(
      fc.record({ at: fc.integer({ min: 4, max: 100 }), steps: fc.integer({ min: 1, max: 60 }) }),
    ),
    removal: seldom(fc.integer({ min: 4, max: 120 })),
    choices: fc.array(fc.nat(29), { maxLength: 250, size: 'max' }),
    writesPerCommand: fc.constantFrom(100, 100, 1, 2),
    isTimed: fc.constant(false),
    locks: fc.boolean(),
  })
}

/**
 * Histories in which one process stores one request after the other, in any order, and settles
 * each. Nothing goes wrong.
 */
function turns(requests: fc.Arbitrary<StoreRequest[]>): fc.Arbitrary<History> {
  const places = fc.array(fc.nat(5), { minLength: 4, maxLength: 8 })
  return fc.tuple(requests, places).map(([some, order]) => {
    const lane = order.map((place): Delivery => ({ places: [place], after: 1_000, forgets: false }))
    return historyOf(some, [workerOf([lane])])
  })
}

const POSTS = 120
const LARGE = 20
const LANES = 4

/**
 * Histories in which two processes store small and large posts to one thread, each in two lanes,
 * while commands take time. A third process dies during a post, which a fourth one stores 300 ms
 * later.
 */
function hotThreads(): fc.Arbitrary<History> {
  const requests = Array.from({ length: POSTS }, (_, place) => {
    const quotes = Array.from({ length: place % 10 === 0 ? LARGE : 1 }, (_, at) => ({
      externalId: `q${place}-${at}`,
      text: 'two',
    }))
    return requestOf(
      { source: { service: 'slack', externalId: 't1', title: 'title' }, quotes },
      place + 1,
    )
  })
  const deliver = (place: number, after = 0): Delivery => ({
    places: [place],
    after,
    forgets: false,
  })
  const lanes = Array.from({ length: LANES }, (_, lane) =>
    requests.flatMap((_, place) => (place > 0 && place % LANES === lane ? [deliver(place)] : [])),
  )
  return fc
    .record({ atWrite: fc.integer({ min: 2, max: 4 }), seed: fc.nat() })
    .map(({ atWrite, seed }) => {
      const death: Break = { atWrite, kind: 'death', share: 0, rest: 'lost' }
      const dying = { ...workerOf([[deliver(0, 200)]]), faults: [death] }
      const workers = [
        workerOf(lanes.slice(0, 2)),
        workerOf(lanes.slice(2)),
        dying,
        workerOf([[deliver(0, 500)]]),
      ]
      return { ...historyOf(requests, workers), choices: [seed], isTimed: true }
    })
}

/** A process with a right clock, to which nothing happens. */
export function workerOf(lanes: Delivery[][]): WorkerPlan {
  return { skew: 0, faults: [], lanes }
}

/** A history in which nothing goes wrong. */
export function historyOf(requests: StoreRequest[], workers: WorkerPlan[]): History {
  return {
    requests,
    workers,
    repairs: [],
    hopeless: [],
    choices: [],
    writesPerCommand: 100,
    isTimed: false,
    locks: false,
  }
}

/**
 * Each request becomes two, of two threads, which share stamps and deliveries: one update can then
 * restamp both.
 */
function twins(history: History): History {
  const { requests, workers } = history
  const twinOf = (request: StoreRequest): StoreRequest => {
    const id = `${request.id}-twin`
    if ('deletes' in request) return { ...request, id }
    const source = { ...request.thread.source, externalId: 'twin' }
    return { ...request, id, thread: { ...request.thread, source } }
  }
  const both = (lane: Delivery[]) =>
    lane.map((one) => ({
      ...one,
      places: one.places.flatMap((place) => [place, place + requests.length]),
    }))
  return {
    ...history,
    requests: [...requests, ...requests.map(twinOf)],
    workers: workers.map((worker) => ({ ...worker, lanes: worker.lanes.map(both) })),
  }
}

/** A thread of appends: no quote is given twice but by a repost. */
function appends(): fc.Arbitrary<Thread> {
  const quote = fc
    .integer({ min: 1, max: 40 })
    .map((n) => ({ externalId: `q${n}`, text: 'two words' }))
  const quotes = fc.uniqueArray(quote, {
    minLength: 1,
    maxLength: 4,
    selector: ({ externalId }) => externalId,
  })
  const source = fc.record({
    service: fc.constant('slack' as const),
    externalId: fc.constantFrom('t1', 't1', 't2'),
    title: fc.constantFrom('title', 'another title'),
  })
  return fc.record({ source, quotes })
}

/**
 * Six appends to one thread that all edit one quote, too. Processes that meet there refuse each
 * other's updates of it.
 */
function editingAppends(): fc.Arbitrary<PostRequest[]> {
  const edited = fc.constantFrom('one', 'two words').map((text) => ({ externalId: 'edited', text }))
  const append = fc.tuple(appends(), edited).map(([{ source, quotes }, quote]) => {
    return { source: { ...source, externalId: 't1' }, quotes: [...quotes, quote] }
  })
  const threads = fc.array(append, { minLength: 6, maxLength: 6 })
  return threads.map((all) => all.map((one, at) => requestOf(one, at + 1)))
}

const reposts = requestsOf(tinyThread(), 6)

const DELETIONS = ['acme', 'acme', 'acme', 'quotes', 'quotes', 'other']

/**
 * Some of these posts become deletions of their sources, or of their quotes, or redactions. A few
 * are of another tenant.
 */
function amongDeletions(
  requests: fc.Arbitrary<PostRequest[]>,
  kinds = DELETIONS,
): fc.Arbitrary<StoreRequest[]> {
  const kind = fc.constantFrom(...kinds)
  const places = fc.dictionary(fc.constantFrom('0', '1', '2', '3', '4', '5'), kind, {
    minKeys: 1,
    maxKeys: 3,
  })
  return fc.tuple(requests, places).map(([posts, chosen]) =>
    posts.map((post, place): StoreRequest => {
      const kind = chosen[place]
      if (kind === undefined) return post
      const { id, stamp, redelivered } = post
      const sourceId = sourceIdOf(post.tenant, post.thread.source)
      const quoteIds = quoteIdsOf(sourceId, post.thread.quotes)
      const redacts = kind === 'redacts' && { redacts: 'all' as const }
      const deletes = { sourceId, ...((kind === 'quotes' || redacts) && { quoteIds }), ...redacts }
      const tenant = kind === 'other' ? 'other' : 'acme'
      return { id, tenant, stamp, redelivered, deletes } satisfies DeleteRequest
    }),
  )
}

const deletions = {
  edits: amongDeletions(requestsOf(thread(['t1']), 6)),
  reposts: amongDeletions(reposts),
  appends: amongDeletions(requestsOf(appends(), 6)),
}

/** Without deletions: one that is stored after a later redaction leaves a thread without words. */
const redactions = amongDeletions(requestsOf(thread(['t1']), 6), ['redacts'])

/** The kinds of histories. */
export const HISTORY_KINDS = {
  'edits of many fields': meetings(requestsOf(thread(['t1']), 6)),
  'reposts of whole threads': meetings(reposts),
  'appends to two threads': fc.oneof(
    { weight: 3, arbitrary: meetings(requestsOf(appends(), 6)) },
    { weight: 1, arbitrary: meetings(editingAppends(), MOST_WORKERS) },
  ),
  'reposts in any order': turns(reposts),
  'reposts of two threads': fc.oneof(meetings(reposts), turns(reposts)).map(twins),
  'deletions among edits': meetings(fc.oneof(deletions.edits, deletions.edits, redactions)),
  'deletions among reposts': meetings(deletions.reposts),
  'deletions among appends': meetings(deletions.appends),
  'deletions in any order': fc.oneof(
    turns(deletions.edits),
    turns(deletions.reposts),
    turns(redactions),
  ),
  'a hot thread': hotThreads(),
}

export type HistoryKind = keyof typeof HISTORY_KINDS

export function historyKinds(): HistoryKind[] {
  const isKind = (name: string): name is HistoryKind => name in HISTORY_KINDS
  return Object.keys(HISTORY_KINDS).filter(isKind)
}
