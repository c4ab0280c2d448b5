// Stores requests in batches. A request that may be at fault for a failure is kept apart from the batches of others.
import { setTimeout as delay } from 'node:timers/promises'
import { createGroupCommit, inSpan } from '@sluice/process'
import { asError, type Lane } from '@sluice/queue'
import type { BatchStore, StoredAnswer } from '@sluice/store'
import { type BatchSize, chooseBatch, type IngestRequest, outcomesOfFailed } from './choose-batch.ts'
import type { WorkerMetrics } from './metrics.ts'
import { isStoreUnavailable, type LostStore, type ProbeStore } from './store-loss.ts'

/** A request was stored or can't be stored, or the store is unavailable and the request's outcome is unknown. */
export type Ingested = { answer: StoredAnswer } | { error: Error } | LostStore

/** `excluded`: another process sums the request's thread. `apart`: the batch failed; try again: see `IngestRequest`. */
type Stored = Ingested | { excluded: true } | { apart: number }

interface IngestDeps {
  storeBatch: BatchStore['store']
  bounds: BatchSize
  probeStore: ProbeStore
  metrics: Pick<WorkerMetrics, 'batchSize' | 'batchTime'>
}

/** If another process sums the thread of a request, the request is tried again after one to two times this pause. */
const EXCLUDED_MS = 20

/**
 * After the last write of a batch of several requests, fetching pauses for this share of the time that the batch took,
 * at most `MAX_PAUSE_MS`. So the pause follows the load and the speed of the store.
 */
const PAUSE_SHARE = 0.75
const MAX_PAUSE_MS = 12

/** A request that is larger than this share of a batch goes into other batches: small requests must not wait for it. */
const LARGE_SHARE = 1 / 8

/** A batch that runs for this time is stuck: all of its commands have time limits. Its tokens have expired. */
const STUCK_MS = 120_000

/** Collects fetched requests into batches, stores each batch, and splits it when it fails. */
export function createIngest({ storeBatch, bounds, probeStore, metrics }: IngestDeps) {
  /** The batches in progress, oldest first, with the times when they began. */
  const running = new Map<readonly IngestRequest[], number>()
  /** The ids of small requests that are not written yet. */
  const unwritten = { interactive: new Set<string>(), bulk: new Set<string>() }
  let laneWritten = Promise.withResolvers<void>()
  const pauseEnds = { interactive: 0, bulk: 0 }
  /** Present if a batch found the store unavailable and no request has arrived since: other batches then fail at once. */
  let lost: LostStore | undefined

  function noteWritten({ lane, id }: IngestRequest): void {
    unwritten[lane].delete(id)
    if (unwritten[lane].size > 0) return
    laneWritten.resolve()
    laneWritten = Promise.withResolvers()
  }

  /** Returns for how long the oldest batch has been running. 0 without a batch. */
  function runningMs(): number {
    const [began = Number.POSITIVE_INFINITY] = running.values()
    return Math.max(performance.now() - began, 0)
  }

  /** Makes a function that stores a request in a batch. Its batches run one after the other. */
  function createBatches(onLastWrite: (batch: IngestRequest[]) => void): (request: IngestRequest) => Promise<Stored> {
    async function storeOnce(batch: IngestRequest[]): Promise<Stored[]> {
      const known = lost
      if (known !== undefined) return batch.map(() => known)
      const began = performance.now()
      running.set(batch, began)
      // Several jobs share a batch, so its span links to their traces and belongs to none.
      const links = [...new Set(batch.flatMap(({ trace }) => trace ?? []))]
      const options = { links, attributes: { 'sluice.requests': batch.length } }
      try {
        const storing = () => storeBatch(batch, () => onLastWrite(batch))
        const stored = links.length > 0 ? inSpan('store batch', undefined, options, storing) : storing()
        const answers = await stored.finally(() => {
          metrics.batchSize.observe(batch.length)
          metrics.batchTime.observe((performance.now() - began) / 1000)
        })
        return batch.map(({ id }) => {
          const answer = answers.get(id)
          return answer === undefined ? { excluded: true } : { answer }
        })
      } catch (error) {
        if (!(await isStoreUnavailable(error, probeStore, batch))) return outcomesOfFailed(batch, error)
        const found: LostStore = { unavailable: true, reason: asError(error).message, since: began }
        lost = found
        return batch.map(() => found)
      } finally {
        // Not before the probe of a failed batch has ended: heartbeats report that MongoDB hangs only while a batch runs.
        running.delete(batch)
      }
    }

    // A single request, which is the most frequent case, needs no choice.
    return createGroupCommit(storeOnce, (gathered) => (gathered.length === 1 ? [0] : chooseBatch(gathered, bounds)))
  }

  const createSmall = (lane: Lane) =>
    createBatches((batch) => {
      const now = performance.now()
      const took = now - (running.get(batch) ?? now)
      pauseEnds[lane] = batch.length > 1 ? now + Math.min(took * PAUSE_SHARE, MAX_PAUSE_MS) : 0
      batch.forEach(noteWritten)
    })
  const createOthers = () => ({ interactive: createBatches(() => {}), bulk: createBatches(() => {}) })
  const [storeLarge, storeApart] = [createOthers(), createOthers()]
  const storeSmall = { interactive: createSmall('interactive'), bulk: createSmall('bulk') }

  function store(request: IngestRequest): Promise<Stored> {
    const { documents, characters, lane, id, apart } = request
    if (apart !== undefined) return storeApart[lane](request)
    const isLarge = documents > bounds.documents * LARGE_SHARE || characters > bounds.characters * LARGE_SHARE
    if (isLarge) return storeLarge[lane](request)
    unwritten[lane].add(id)
    return storeSmall[lane](request).finally(() => noteWritten(request))
  }

  return {
    /** Stores a request in a batch with others. If it fails, the others are stored all the same. */
    async ingest(request: IngestRequest): Promise<Ingested> {
      lost = undefined
      for (let next = request; ; ) {
        const stored = await store(next)
        // A batch that failed may have written parts of each request.
        if ('apart' in stored) next = { ...request, redelivered: true, ...stored }
        else if ('excluded' in stored) await delay(EXCLUDED_MS * (1 + Math.random()))
        else return stored
      }
    },
    /** Resolves when jobs of this lane should be fetched. Until then, they wait where every worker can fetch them. */
    async ready(lane: Lane): Promise<void> {
      while (unwritten[lane].size > 0) await laneWritten.promise
      // A small batch costs as much as a large one, so under load each batch waits until some more jobs have arrived.
      const ms = pauseEnds[lane] - performance.now()
      if (ms > 0) await delay(ms)
    },
    runningMs,
    /** Returns why the process must be restarted, if it must. */
    findStuck(): string | undefined {
      const ms = runningMs()
      return ms < STUCK_MS ? undefined : `a batch has been running for ${Math.round(ms / 1000)} s`
    },
  }
}
