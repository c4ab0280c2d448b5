// Connects queue and store: gathers the threads of fetched jobs, stores them in batches, and returns their receipts.
import { setTimeout as delay } from 'node:timers/promises'
import type { Thread } from '@sluice/contract'
import type { Logger } from '@sluice/ops'
import {
  type Away,
  type Consumer,
  type ConsumerOptions,
  createConsumer,
  createGroupCommit,
  type FetchedJob,
  type Lane,
  makeReceipt,
  PartlyStoredError,
  type Receipt,
  type Worked,
} from '@sluice/queue'
import type { BatchStore, StoredAnswer, StoreRequest } from '@sluice/store'
import { type BatchItem, type BatchSize, chooseBatch } from './choose-batch.ts'
import type { WorkerMetrics } from './metrics.ts'
import { createPutBack, isStoreAway, type ProbeStore, storeOneByOne } from './store-away.ts'

/** The dependencies of a worker. */
export interface WorkerDeps
  extends Pick<
    ConsumerOptions,
    'keys' | 'redis' | 'resultBounds' | 'claimBytes' | 'failedBytes' | 'concurrency' | 'bytesInHand'
  > {
  ingest: ReturnType<typeof createIngest>
  /** Is awaited before a job with these requests fails for good. */
  beforeFinalFailure: (requests: readonly StoreRequest[]) => Promise<void>
  probeStore: ProbeStore
  metrics: WorkerMetrics
  log: Logger
}

/** Builds a worker, which fetches jobs from now on. */
export function buildWorker(deps: WorkerDeps): Consumer {
  const { log, metrics, probeStore } = deps
  const putBack = createPutBack(deps)
  const onStoreAway = (job: FetchedJob) => putBack(consumer, requestsOf(job), describe(job))
  const consumer: Consumer = createConsumer({
    ...deps,
    ready: deps.ingest.ready,
    work: (job) => work(job, deps, onStoreAway),
    async beforeFinalFailure(job) {
      const requests = requestsOf(job)
      try {
        await deps.beforeFinalFailure(requests)
        return undefined
      } catch (error) {
        if (!(await isStoreAway(error, probeStore, requests))) throw error
        return onStoreAway(job)
      }
    },
    onFailed(job, reason, final) {
      metrics.failed.inc({ final: String(final) })
      log[final ? 'error' : 'warn']({ ...describe(job), reason }, final ? 'job.failed' : 'job.try_failed')
    },
    onEvicted: (jobId) => log.warn({ jobId }, 'job.evicted'),
    onError: (err) => log.error({ err }, 'queue.failed'),
  })
  return consumer
}

type OnStoreAway = (job: FetchedJob) => Away

async function work(job: FetchedJob, { ingest, metrics, log }: WorkerDeps, onStoreAway: OnStoreAway): Promise<Worked> {
  const began = performance.now()
  const queuedMs = Date.now() - job.enqueuedAt
  metrics.queueTime.observe(queuedMs / 1000)
  const requests = requestsOf(job)
  const settled = await Promise.allSettled(requests.map(ingest.ingest))
  if (settled.some((one) => one.status === 'fulfilled' && 'away' in one.value)) return onStoreAway(job)
  const receipts = requests.map(({ thread }, at) => receiptOf(thread, settled[at]))
  for (const receipt of receipts) if (receipt !== null) metrics.stored.inc({ outcome: receipt.source.outcome })
  const stored = receipts.filter((receipt) => receipt !== null)
  if (stored.length < receipts.length) throw new PartlyStoredError(reasonOf(settled), receipts)
  const durationMs = Math.round((performance.now() - began) * 10) / 10
  log.info({ ...describe(job), ...summarise(stored), queuedMs, durationMs }, 'job.stored')
  return { receipts: stored }
}

function requestsOf({ id, lane, redelivered, suspect, digests, data }: FetchedJob): IngestRequest[] {
  const { tenant, stamp, threads } = data
  return threads.map((thread, at) => ({
    // Unique to the thread, and the same each time the job is delivered.
    id: threads.length === 1 ? id : `${id}.${at}`,
    tenant,
    stamp: stamp + at,
    redelivered,
    suspect,
    lane,
    thread,
    documents: 1 + thread.quotes.length,
    characters: thread.quotes.reduce((sum, { text }) => sum + text.length, 0),
    ...(digests[at] !== undefined && { digest: digests[at] }),
  }))
}

function receiptOf(thread: Thread, settled: PromiseSettledResult<Ingested> | undefined): Receipt | null {
  if (settled?.status !== 'fulfilled' || 'away' in settled.value) return null
  return makeReceipt(thread, settled.value.answer)
}

function reasonOf(settled: PromiseSettledResult<Ingested>[]): string {
  const failed = settled.find((one) => one.status === 'rejected')
  return failed?.reason instanceof Error ? failed.reason.message : String(failed?.reason)
}

function describe({ id, data, attempt }: FetchedJob) {
  const { tenant, requestId, threads } = data
  const only = threads.length === 1 ? threads[0]?.source : undefined
  const content =
    only === undefined ? { threads: threads.length } : { service: only.service, externalId: only.externalId }
  return { jobId: id, requestId, tenant, ...content, attempt }
}

function summarise(receipts: Receipt[]) {
  const quotes = receipts.reduce((sum, receipt) => sum + receipt.outcomes.length, 0)
  const [first] = receipts
  return receipts.length === 1 && first !== undefined ? { outcome: first.source.outcome, quotes } : { quotes }
}

/** A request to store one thread. */
export interface IngestRequest extends StoreRequest, BatchItem {}

/** A request was stored, or the store is away and the request's outcome is unknown. */
type Ingested = { answer: StoredAnswer } | Away

interface IngestDeps {
  storeBatch: BatchStore['store']
  bounds: BatchSize
  probeStore: ProbeStore
  metrics: Pick<WorkerMetrics, 'batchSize' | 'batchTime'>
}

/** The calls of the store that have not ended, oldest first, with the times when they began. */
type RunningBatches = Map<readonly IngestRequest[], number>

/** Is called in each round when the first command with quotes was sent or, if sources were reserved, the commit. */
type OnLastWrite = (batch: IngestRequest[]) => void

/** `excluded`: another process is summing the request's thread, so the request was not stored. */
type Tried = Ingested | { error: unknown } | { excluded: true }

/** A request whose thread another process is summing is tried again after one to two times this pause. */
const EXCLUDED_MS = 20

/**
 * The pause after the last write of a batch of more than one request: this share of the time that the batch took until
 * then, so that it follows the load and the speed of the store. A single caller never waits for it.
 */
const PAUSE_SHARE = 0.75
const MAX_PAUSE_MS = 12

/** A request that needs more than this share of a batch is stored beside the batches: no other one waits for it. */
const LARGE_SHARE = 1 / 8

/**
 * A batch that runs for this time is stuck: a batch that writes quotes ends 30 s after it opened its sources + 10 s for
 * its last command. After two minutes, other workers count the batch as dead.
 */
const STUCK_MS = 120_000

/** Makes a store of requests that gathers them in batches. */
export function createIngest(deps: IngestDeps) {
  const { bounds } = deps
  const running: RunningBatches = new Map()
  const unwritten = { interactive: createPending(), bulk: createPending() }
  let pauseEnds = 0
  const storeSmall = createBatches(deps, running, (batch) => {
    const now = performance.now()
    const took = now - (running.get(batch) ?? now)
    pauseEnds = batch.length > 1 ? now + Math.min(took * PAUSE_SHARE, MAX_PAUSE_MS) : 0
    for (const { lane, id } of batch) unwritten[lane].done(id)
  })
  const storeLarge = createBatches(deps, running, () => {})

  async function ingestSmall(request: IngestRequest): Promise<Tried> {
    const { lane, id } = request
    unwritten[lane].add(id)
    try {
      return await storeSmall(request)
    } finally {
      unwritten[lane].done(id)
    }
  }

  function isLarge({ documents, characters }: BatchSize): boolean {
    return documents > bounds.documents * LARGE_SHARE || characters > bounds.characters * LARGE_SHARE
  }

  return {
    /**
     * Stores a request together with others. Throws if this request can't be stored; the others are stored all the
     * same.
     */
    async ingest(request: IngestRequest): Promise<Ingested> {
      const store = isLarge(request) ? storeLarge : ingestSmall
      for (;;) {
        const tried = await store(request)
        if ('error' in tried) throw tried.error
        if (!('excluded' in tried)) return tried
        await delay(EXCLUDED_MS * (1 + Math.random()))
      }
    },
    /**
     * Resolves when jobs that are fetched from this lane now would soon be written. While a batch is being written, the
     * next one gathers in the queue, where every worker can fetch it; it is fetched during the last write of the batch.
     */
    async ready(lane: Lane): Promise<void> {
      await unwritten[lane].untilEmpty()
      // A small batch costs as much as a large one, so under load each batch waits until some more jobs have arrived.
      const ms = pauseEnds - performance.now()
      if (ms > 0) await delay(ms)
    },
    /** Returns why the process must be restarted, if it must. */
    findStuck(): string | undefined {
      const [began = Number.POSITIVE_INFINITY] = running.values()
      const ms = performance.now() - began
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

/** Makes a series of batches, one after the other. It returns a function that stores a request in one of them. */
function createBatches(
  { storeBatch, bounds, probeStore, metrics }: IngestDeps,
  running: RunningBatches,
  onLastWrite: OnLastWrite,
): (request: IngestRequest) => Promise<Tried> {
  /** Stores a batch, and each of its requests alone if the batch fails. */
  async function storeOrSplit(batch: IngestRequest[]): Promise<Tried[]> {
    const began = performance.now()
    running.set(batch, began)
    try {
      const answers = await storeBatch(batch, () => onLastWrite(batch)).finally(() => {
        running.delete(batch)
        metrics.batchSize.observe(batch.length)
        metrics.batchTime.observe((performance.now() - began) / 1000)
      })
      return batch.map(({ id }) => {
        const answer = answers.get(id)
        return answer === undefined ? { excluded: true } : { answer }
      })
    } catch (error) {
      if (await isStoreAway(error, probeStore, batch)) return batch.map(() => ({ away: true }))
      return batch.length === 1 ? [{ error }] : storeOneByOne(batch, storeOrSplit)
    }
  }

  // A single request, which is the most frequent case, needs no choice.
  return createGroupCommit(storeOrSplit, (gathered) => (gathered.length === 1 ? [0] : chooseBatch(gathered, bounds)))
}
