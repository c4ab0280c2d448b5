// Gathers requests and stores them in batches.
import { setTimeout as delay } from 'node:timers/promises'
import { type Away, type ChooseGroup, createGroupCommit, type Lane } from '@sluice/queue'
import type { BatchStore, StoredAnswer, StoreRequest } from '@sluice/store'
import type { WorkerMetrics } from './metrics.ts'
import { isStoreAway, type ProbeStore } from './store-away.ts'

/** A request to store one thread. */
export interface IngestRequest extends StoreRequest {
  /** The request may have crashed a worker, so it is stored alone. */
  suspect: boolean
  /** Each lane has a share of every batch. */
  lane: Lane
}

/** A request was stored, or the store is away and the request's outcome is unknown. */
export type Ingested = { answer: StoredAnswer } | Away

/** Bounds of one batch, which always holds at least one request. */
export interface BatchBounds {
  documents: number
  /** Characters of text: nearly all of a batch's bytes are text. */
  characters: number
}

/** Stores requests in batches. */
export type Ingest = ReturnType<typeof createIngest>

interface IngestDeps {
  storeBatch: BatchStore['store']
  bounds: BatchBounds
  probeStore: ProbeStore
  metrics: Pick<WorkerMetrics, 'batchSize' | 'batchTime'>
}

/** Is called in each round when the first quote command, or the commit, was sent. */
type OnLastWrite = (batch: IngestRequest[]) => void

/** `excluded`: another process is summing the request's thread, so the request was not stored. */
type Tried = Ingested | { error: unknown } | { excluded: true }

/** A request whose thread another process is summing is tried again after a time of at least this many ms, and of twice as many at most. */
const EXCLUDED_MS = 20

/** The pause after a batch of more than one request, in ms. A single caller never waits for it. */
const PACE_MS = 4

/** A request that needs more than this share of a batch is stored beside the batches, so that no other request waits for it. */
const LARGE_SHARE = 1 / 8

/**
 * A batch that runs for so many ms is stuck. Each of its commands ends within ten seconds, and a batch that writes quotes gives up thirty seconds after it opened
 * its sources. After two minutes, other workers count it as dead.
 */
const STUCK_MS = 120_000

/** Makes a store of requests that gathers them in batches. */
export function createIngest(options: IngestDeps) {
  const { findStuck, watch } = createRunningBatches()
  const deps = { ...options, storeBatch: watch(options.storeBatch) }
  const unwritten = { interactive: createPending(), bulk: createPending() }
  let lastBatch = { size: 0, at: 0 }
  /** A small batch costs as much as a large one, so under load each batch waits until some more jobs have arrived. */
  async function pace(): Promise<void> {
    const ms = lastBatch.at + PACE_MS - performance.now()
    if (lastBatch.size > 1 && ms > 0) await delay(ms)
  }
  const open = (onLastWrite: OnLastWrite) =>
    createGroupCommit((batch: IngestRequest[]) => storeMeasured(batch, deps, onLastWrite), chooseBatch(deps.bounds))
  const storeSmall = open((batch) => {
    lastBatch = { size: batch.length, at: performance.now() }
    for (const { lane, id } of batch) unwritten[lane].done(id)
  })
  const storeLarge = open(() => {})

  async function ingestSmall(request: IngestRequest): Promise<Tried> {
    const { lane, id } = request
    unwritten[lane].add(id)
    try {
      return await storeSmall(request)
    } finally {
      unwritten[lane].done(id)
    }
  }

  return {
    /** Stores a request together with others. Throws if this one can't be stored; the others are stored all the same. */
    async ingest(request: IngestRequest): Promise<Ingested> {
      const store = fits(sizeOf(request), deps.bounds, LARGE_SHARE) ? ingestSmall : storeLarge
      for (;;) {
        const tried = await store(request)
        if ('error' in tried) throw tried.error
        if (!('excluded' in tried)) return tried
        await delay(EXCLUDED_MS * (1 + Math.random()))
      }
    },
    /**
     * Resolves when jobs that are fetched from this lane now would soon be written. While a batch is being written, the next one gathers in the queue, where
     * every worker can fetch it; it is fetched during the last write of the batch.
     */
    async ready(lane: Lane): Promise<void> {
      await unwritten[lane].untilEmpty()
      await pace()
    },
    /** Returns why the process must be restarted, if it must. */
    findStuck,
  }
}

/** Tracks the running batches by the times when they began. */
function createRunningBatches() {
  const running = new Set<{ began: number }>()
  return {
    watch(store: BatchStore['store']): BatchStore['store'] {
      return async (...args) => {
        const batch = { began: performance.now() }
        running.add(batch)
        try {
          return await store(...args)
        } finally {
          running.delete(batch)
        }
      }
    },
    findStuck(): string | undefined {
      const [oldest] = running
      const ms = oldest === undefined ? 0 : performance.now() - oldest.began
      return ms < STUCK_MS ? undefined : `a batch has been running for ${Math.round(ms / 1000)} s`
    },
  }
}

/** Tracks requests that are not written yet, by id. */
function createPending() {
  const ids = new Set<string>()
  let emptied = Promise.withResolvers<void>()
  return {
    add: (id: string) => void ids.add(id),
    done(id: string) {
      ids.delete(id)
      if (ids.size > 0) return
      emptied.resolve()
      emptied = Promise.withResolvers()
    },
    async untilEmpty(): Promise<void> {
      while (ids.size > 0) await emptied.promise
    },
  }
}

async function storeMeasured(batch: IngestRequest[], deps: IngestDeps, onLastWrite: OnLastWrite): Promise<Tried[]> {
  const began = performance.now()
  const tried = await storeOrSplit(batch, deps, onLastWrite)
  deps.metrics.batchSize.observe(batch.length)
  deps.metrics.batchTime.observe((performance.now() - began) / 1000)
  return tried
}

/** Stores a batch, and each of its requests alone if the batch fails. */
async function storeOrSplit(batch: IngestRequest[], deps: IngestDeps, onLastWrite: OnLastWrite): Promise<Tried[]> {
  try {
    const answers = await deps.storeBatch(batch, () => onLastWrite(batch))
    return batch.map(({ id }) => {
      const answer = answers.get(id)
      return answer === undefined ? { excluded: true } : { answer }
    })
  } catch (error) {
    if (await isStoreAway(error, deps.probeStore, charactersOf(batch))) return batch.map(() => ({ away: true }))
    return batch.length === 1 ? [{ error }] : storeOneByOne(batch, deps, onLastWrite)
  }
}

/** Stops when the store is away: each of the others would wait for it as long. */
async function storeOneByOne(batch: IngestRequest[], deps: IngestDeps, onLastWrite: OnLastWrite): Promise<Tried[]> {
  const alone: Tried[] = []
  for (const request of batch) {
    // The batch may have written parts of each request.
    const [tried = { away: true }] = await storeOrSplit([{ ...request, redelivered: true }], deps, onLastWrite)
    if ('away' in tried) return batch.map((_, at) => alone[at] ?? tried)
    alone.push(tried)
  }
  return alone
}

/** Counts the characters of the texts, which are nearly all that is written. */
export function charactersOf(requests: readonly Pick<IngestRequest, 'thread'>[]): number {
  return requests.reduce((sum, request) => sum + sizeOf(request).characters, 0)
}

/** The bulk lane's share of each batch while both lanes have requests. */
const BULK_SHARE = 0.25

/** Chooses the requests of the next batch. */
function chooseBatch(bounds: BatchBounds): ChooseGroup<IngestRequest> {
  return (gathered) => {
    const suspect = gathered.findIndex((request) => request.suspect)
    if (suspect !== -1) return [suspect]
    const all = gathered.map((request, place) => ({ request, place }))
    const interactive = all.filter(({ request }) => request.lane === 'interactive')
    const bulk = all.filter(({ request }) => request.lane === 'bulk')
    const forInteractive = bulk.length === 0 ? 1 : 1 - BULK_SHARE
    const forBulk = interactive.length === 0 ? 1 : BULK_SHARE
    return [...fill(interactive, bounds, forInteractive), ...fill(bulk, bounds, forBulk)]
  }
}

/** Returns the places of the first requests that fit into this share of a batch, at least one. */
function fill(
  requests: readonly { request: IngestRequest; place: number }[],
  bounds: BatchBounds,
  share: number,
): number[] {
  const places: number[] = []
  const size = { documents: 0, characters: 0 }
  for (const { request, place } of requests) {
    const { documents, characters } = sizeOf(request)
    size.documents += documents
    size.characters += characters
    if (!fits(size, bounds, share) && places.length > 0) break
    places.push(place)
  }
  return places
}

function sizeOf({ thread: { quotes } }: Pick<IngestRequest, 'thread'>): BatchBounds {
  return { documents: 1 + quotes.length, characters: quotes.reduce((sum, { text }) => sum + text.length, 0) }
}

function fits(size: BatchBounds, bounds: BatchBounds, share: number): boolean {
  return size.documents <= bounds.documents * share && size.characters <= bounds.characters * share
}
