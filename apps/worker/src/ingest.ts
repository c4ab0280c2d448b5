// Stores requests in batches. A request that may have caused a failure shares no batch with others.
import { setTimeout as delay } from 'node:timers/promises'
import { createGroupCommit, inSpan } from '@sluice/process'
import { asError, type Lane } from '@sluice/queue'
import { CommandFailedError, refusalOf, type StoreAnswer, type StoreRequest } from '@sluice/store'
import type { WorkerMetrics } from './metrics.ts'
import { isStoreUnavailable, type LostStore, type ProbeStore } from './store-loss.ts'

/**
 * The size of a request, or the bounds of a batch. A batch always contains at least one request.
 */
interface BatchSize {
  /** The source and its quotes. */
  documents: number
  /** The characters of text, which are nearly all that is written. */
  characters: number
}

/** A request as a part of a batch. */
export type IngestRequest = StoreRequest & InBatch

interface InBatch extends BatchSize {
  /**
   * Present if the request may have caused a failure or a crash. It then shares a batch only with
   * other requests of this kind.
   */
  apart?: Apart
  /** The requests of a batch have the same lane. */
  lane: Lane
  trace?: string
}

/** How a request is separated from others. */
interface Apart {
  /**
   * The most requests in its batch, or any number if absent. After a failed batch, this is half of
   * the batch, so that few attempts find the cause.
   */
  most?: number
}

/**
 * The request was stored, or it can't be stored, or the store is unavailable and the outcome is
 * unknown.
 */
export type Ingested = { answer: StoreAnswer } | { error: Error } | LostStore

/**
 * Two more outcomes, after which the request is stored again. `excluded`: another process sums its
 * thread. `apart`: its batch failed.
 */
type Attempted = Ingested | { excluded: true } | { apart: Apart }

interface IngestDeps {
  storeBatch: (
    requests: readonly StoreRequest[],
    onLastWrite: () => void,
  ) => Promise<Map<string, StoreAnswer>>
  bounds: BatchSize
  probeStore: ProbeStore
  metrics: Pick<WorkerMetrics, 'batchSize' | 'batchTime'>
}

/**
 * If another process sums the thread of a request, the request is stored again after one to two
 * times this pause.
 */
const EXCLUDED_MS = 20

/**
 * After the last write of a batch with several requests, fetching pauses for this share of the
 * batch's time, at most `MAX_PAUSE_MS`. So the pause adapts to the load and to the speed of the
 * store.
 */
const PAUSE_SHARE = 0.75
const MAX_PAUSE_MS = 12

/**
 * A request that is larger than this share of a batch goes into separate batches, so that small
 * requests do not wait for it.
 */
const LARGE_SHARE = 1 / 8

/**
 * A batch that has run for this time is stuck, because all of its commands have time limits. Its
 * tokens have expired by then.
 */
const STUCK_MS = 120_000

/** Collects fetched requests into batches, stores each batch, and splits it when it fails. */
export function createIngest({ storeBatch, bounds, probeStore, metrics }: IngestDeps) {
  /** The batches in progress, oldest first, with their starting times. */
  const running = new Map<readonly IngestRequest[], number>()
  /** The ids of small requests that are not written yet, by lane. */
  const unwritten = { interactive: new Set<string>(), bulk: new Set<string>() }
  let laneWritten = Promise.withResolvers<void>()
  const pauseEnds = { interactive: 0, bulk: 0 }
  /**
   * Set by a batch that found the store unavailable. The batches queued behind it then fail without
   * trying the store, until the next request arrives, whose batch tries again.
   */
  let lost: LostStore | undefined

  function noteWritten({ lane, id }: IngestRequest): void {
    unwritten[lane].delete(id)
    if (unwritten[lane].size > 0) return
    laneWritten.resolve()
    laneWritten = Promise.withResolvers()
  }

  /** Returns for how long the oldest running batch has run. Returns 0 if none runs. */
  function runningMs(): number {
    const [began = Number.POSITIVE_INFINITY] = running.values()
    return Math.max(performance.now() - began, 0)
  }

  /** Makes a function that stores a request in a batch. These batches run one after the other. */
  function createBatches(
    onLastWrite: (batch: IngestRequest[]) => void,
  ): (request: IngestRequest) => Promise<Attempted> {
    async function storeOnce(batch: IngestRequest[]): Promise<Attempted[]> {
      const known = lost
      if (known !== undefined) return batch.map(() => known)
      const began = performance.now()
      running.set(batch, began)
      // A batch has several jobs, so its span has links to their traces and belongs to none of
      // them.
      const links = [...new Set(batch.flatMap(({ trace }) => trace ?? []))]
      const options = { links, attributes: { 'sluice.requests': batch.length } }
      try {
        const storing = () => storeBatch(batch, () => onLastWrite(batch))
        const stored =
          links.length > 0 ? inSpan('store batch', undefined, options, storing) : storing()
        const answers = await stored.finally(() => {
          metrics.batchSize.observe(batch.length)
          metrics.batchTime.observe((performance.now() - began) / 1000)
        })
        return batch.map(({ id }) => {
          const answer = answers.get(id)
          return answer === undefined ? { excluded: true } : { answer }
        })
      } catch (error) {
        if (!(await isStoreUnavailable(error, probeStore, batch)))
          return outcomesOfFailed(batch, error)
        const found: LostStore = { unavailable: true, reason: asError(error).message, since: began }
        lost = found
        return batch.map(() => found)
      } finally {
        // Only after the probe of a failed batch has ended, because heartbeats report that MongoDB
        // hangs only while a batch runs.
        running.delete(batch)
      }
    }

    // A single request is the most frequent case, and leaves nothing to choose.
    return createGroupCommit(storeOnce, (gathered) =>
      gathered.length === 1 ? [0] : chooseBatch(gathered, bounds),
    )
  }

  const createSmall = (lane: Lane) =>
    createBatches((batch) => {
      const now = performance.now()
      const took = now - (running.get(batch) ?? now)
      pauseEnds[lane] = batch.length > 1 ? now + Math.min(took * PAUSE_SHARE, MAX_PAUSE_MS) : 0
      batch.forEach(noteWritten)
    })
  const createOthers = () => ({
    interactive: createBatches(() => {}),
    bulk: createBatches(() => {}),
  })
  const [storeLarge, storeDeletions, storeApart] = [createOthers(), createOthers(), createOthers()]
  const storeSmall = { interactive: createSmall('interactive'), bulk: createSmall('bulk') }

  function store(request: IngestRequest): Promise<Attempted> {
    const { documents, characters, lane, id, apart } = request
    if (apart !== undefined) return storeApart[lane](request)
    // A deletion may have a million quotes to remove, and no post should wait for that.
    if ('deletes' in request) return storeDeletions[lane](request)
    const isLarge =
      documents > bounds.documents * LARGE_SHARE || characters > bounds.characters * LARGE_SHARE
    if (isLarge) return storeLarge[lane](request)
    unwritten[lane].add(id)
    return storeSmall[lane](request).finally(() => noteWritten(request))
  }

  return {
    /**
     * Stores a request together with others in a batch. If it fails, the others are stored
     * nevertheless.
     */
    async ingest(request: IngestRequest): Promise<Ingested> {
      lost = undefined
      for (let next = request; ; ) {
        const attempted = await store(next)
        // A failed batch may have written parts of each request.
        if ('apart' in attempted) next = { ...request, redelivered: true, apart: attempted.apart }
        else if ('excluded' in attempted) await delay(EXCLUDED_MS * (1 + Math.random()))
        else return attempted
      }
    },
    /**
     * Resolves when jobs of this lane should be fetched. Until then, jobs stay in the queue, where
     * any worker can fetch them.
     */
    async ready(lane: Lane): Promise<void> {
      while (unwritten[lane].size > 0) await laneWritten.promise
      // A small batch costs as much as a large one. So under load, wait until some more jobs have
      // arrived.
      const ms = pauseEnds[lane] - performance.now()
      if (ms > 0) await delay(ms)
    },
    runningMs,
    /** Returns why the process must be restarted. Returns undefined if it need not be. */
    findStuck(): string | undefined {
      const ms = runningMs()
      return ms < STUCK_MS ? undefined : `a batch has been running for ${Math.round(ms / 1000)} s`
    },
  }
}

/** Returns the indexes of the first requests that fit into a batch, at least one. */
function chooseBatch(gathered: readonly IngestRequest[], bounds: BatchSize): readonly number[] {
  const chosen: number[] = []
  let [documents, characters, most] = [0, 0, gathered.length]
  for (const [index, request] of gathered.entries()) {
    documents += request.documents
    characters += request.characters
    most = Math.min(most, request.apart?.most ?? most)
    const fits = documents <= bounds.documents && characters <= bounds.characters && index < most
    if (index > 0 && !fits) break
    chosen.push(index)
  }
  return chosen
}

/**
 * The most requests in a batch that is stored again: with 380 partly written threads, other callers
 * waited 0.5 s.
 */
const MOST_APART = 50

/**
 * Returns the outcome of each request of a failed batch: requests that MongoDB refused fail, and
 * all others are stored again.
 */
function outcomesOfFailed(
  batch: readonly IngestRequest[],
  error: unknown,
): ({ error: Error } | { apart: Apart })[] {
  // If a whole command failed, the store may have been unavailable for a moment. So store even a
  // single request again.
  const isFirstFailure = error instanceof CommandFailedError && batch[0]?.apart === undefined
  const reason = asError(error instanceof CommandFailedError ? error.cause : error)
  if (batch.length === 1 && !isFirstFailure) return [{ error: reason }]
  const refusals = batch.map((request) => refusalOf(error, request))
  // If several requests are for a refused thread, only some of them may have caused the refusal.
  const isOnly = (refusal: Error) => refusals.indexOf(refusal) === refusals.lastIndexOf(refusal)
  const again = { apart: { most: Math.min(Math.ceil(batch.length / 2), MOST_APART) } }
  return refusals.map((refusal) =>
    refusal !== undefined && isOnly(refusal) ? { error: refusal } : again,
  )
}
