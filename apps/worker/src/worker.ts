// Stores the threads of fetched jobs in batches, and returns their receipts.
import { setTimeout as delay } from 'node:timers/promises'
import { inSpan, type Logger, SpanKind, traceIdOf } from '@sluice/ops'
import { type Away, createGroupCommit, type FetchedJob, type Lane, makeReceipt, type Worked } from '@sluice/queue'
import type { BatchStore } from '@sluice/store'
import { type BatchSize, chooseBatch, type IngestRequest } from './choose-batch.ts'
import type { WorkerMetrics } from './metrics.ts'
import { type Ingested, type ProbeStore, partlyStored, settleFailed } from './store-away.ts'

interface WorkDeps {
  ingest: Pick<ReturnType<typeof createIngest>, 'ingest'>
  /** Puts back a job because the store is away. */
  putBack: (job: FetchedJob, reason: string) => Away
  metrics: Pick<WorkerMetrics, 'queueTime' | 'storeTime' | 'totalTime'>
  log: Logger
}

/** Makes the function that stores the threads of a job. */
export function createWork({ ingest, putBack, metrics, log }: WorkDeps): (job: FetchedJob) => Promise<Worked> {
  return (job) => {
    const { id, attempt, data } = job
    if (data.trace === undefined) return work(job)
    const attributes = { 'sluice.job_id': id, 'sluice.attempt': attempt, 'sluice.tenant': data.tenant }
    return inSpan('job', data.trace, { kind: SpanKind.CONSUMER, attributes }, (trace) => work(job, trace))
  }

  async function work(job: FetchedJob, trace?: string): Promise<Worked> {
    const began = performance.now()
    // Redis's clock may be ahead of this worker's.
    const queuedMs = Math.max(Date.now() - job.enqueuedAt, 0)
    // A later try waited for the tries before it, or for an operator.
    const { lane } = job
    if (!job.redelivered) metrics.queueTime.observe({ lane }, queuedMs / 1000)
    const requests = requestsOf(job, trace)
    const ingested = await Promise.all(requests.map(ingest.ingest))
    const away = ingested.find((one) => 'away' in one)
    if (away !== undefined) return putBack(job, away.reason)
    const receipts = requests.map(({ thread }, at) => {
      const one = ingested[at]
      return one !== undefined && 'answer' in one ? makeReceipt(thread, one.answer) : null
    })
    const stored = receipts.filter((receipt) => receipt !== null)
    if (stored.length < receipts.length) throw partlyStored(job, ingested, receipts)
    const outcome = stored.length === 1 ? stored[0]?.source.outcome : undefined
    const quotes = stored.reduce((sum, { outcomes }) => sum + outcomes.length, 0)
    const durationMs = Math.round((performance.now() - began) * 10) / 10
    metrics.storeTime.observe({ lane }, durationMs / 1000)
    metrics.totalTime.observe({ lane }, (queuedMs + durationMs) / 1000)
    log.info({ ...describeJob(job), outcome, quotes, queuedMs, durationMs }, 'job.stored')
    return { receipts: stored }
  }
}

/** The requests to store the threads of a job. */
export function requestsOf(
  { id, lane, redelivered, suspect, digests, data }: FetchedJob,
  trace?: string,
): IngestRequest[] {
  const { tenant, stamp, threads } = data
  return threads.map((thread, at) => {
    const { service, externalId } = thread.source
    const first = threads.findIndex(({ source }) => source.externalId === externalId && source.service === service)
    return {
      // Unique to the thread, and the same each time the job is delivered.
      id: threads.length === 1 ? id : `${id}.${at}`,
      tenant,
      // Only threads of one source need an order. All others share a stamp, so that one update can move it on many sources.
      stamp: first === at ? stamp : stamp + at,
      redelivered,
      suspect,
      lane,
      thread,
      documents: 1 + thread.quotes.length,
      characters: thread.quotes.reduce((sum, { text }) => sum + text.length, 0),
      ...(digests[at] !== undefined && { digest: digests[at] }),
      ...(trace !== undefined && { trace }),
    }
  })
}

/** The fields of a log line that name a job. */
export function describeJob({ id, data, attempt }: FetchedJob) {
  const { tenant, requestId, threads } = data
  const only = threads.length === 1 ? threads[0]?.source : undefined
  const content =
    only === undefined ? { threads: threads.length } : { service: only.service, externalId: only.externalId }
  const ids = { jobId: id, requestId, traceId: data.trace && traceIdOf(data.trace), importId: data.import?.id }
  return { ...ids, tenant, ...content, attempt }
}

/** `excluded`: another process is summing the request's thread, so the request was not stored. */
type Tried = Ingested | { excluded: true }

interface IngestDeps {
  storeBatch: BatchStore['store']
  bounds: BatchSize
  probeStore: ProbeStore
  metrics: Pick<WorkerMetrics, 'batchSize' | 'batchTime'>
}

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
export function createIngest({ storeBatch, bounds, probeStore, metrics }: IngestDeps) {
  /** The batches in progress, oldest first, with the times when they began. */
  const running = new Map<readonly IngestRequest[], number>()
  /** The ids of requests that are not written yet. */
  const unwritten = { interactive: new Set<string>(), bulk: new Set<string>() }
  let laneWritten = Promise.withResolvers<void>()
  let pauseEnds = 0

  function noteWritten({ lane, id }: IngestRequest): void {
    unwritten[lane].delete(id)
    if (unwritten[lane].size > 0) return
    laneWritten.resolve()
    laneWritten = Promise.withResolvers()
  }

  /**
   * Makes a series of batches, one after the other.
   *
   * @param onLastWrite is called in each round when the first command with quotes was sent or, if sources were reserved,
   *   the commit.
   */
  function createBatches(onLastWrite: (batch: IngestRequest[]) => void): (request: IngestRequest) => Promise<Tried> {
    /** Stores a batch, and its parts if the batch fails. */
    async function storeOrSplit(batch: IngestRequest[]): Promise<Tried[]> {
      const began = performance.now()
      running.set(batch, began)
      // Several jobs share a batch, so it belongs to no trace of theirs.
      const links = [...new Set(batch.flatMap(({ trace }) => trace ?? []))]
      const options = { links, attributes: { 'sluice.requests': batch.length } }
      try {
        const storing = () => storeBatch(batch, () => onLastWrite(batch))
        const stored = links.length > 0 ? inSpan('store batch', undefined, options, storing) : storing()
        const answers = await stored.finally(() => {
          running.delete(batch)
          metrics.batchSize.observe(batch.length)
          metrics.batchTime.observe((performance.now() - began) / 1000)
        })
        return batch.map(({ id }) => {
          const answer = answers.get(id)
          return answer === undefined ? { excluded: true } : { answer }
        })
      } catch (error) {
        return settleFailed(batch, error, probeStore, storeOrSplit)
      }
    }

    // A single request, which is the most frequent case, needs no choice.
    return createGroupCommit(storeOrSplit, (gathered) => (gathered.length === 1 ? [0] : chooseBatch(gathered, bounds)))
  }

  const storeLarge = createBatches(() => {})
  const storeSmall = createBatches((batch) => {
    const now = performance.now()
    const took = now - (running.get(batch) ?? now)
    pauseEnds = batch.length > 1 ? now + Math.min(took * PAUSE_SHARE, MAX_PAUSE_MS) : 0
    batch.forEach(noteWritten)
  })

  function store(request: IngestRequest): Promise<Tried> {
    const { documents, characters, lane, id } = request
    const isLarge = documents > bounds.documents * LARGE_SHARE || characters > bounds.characters * LARGE_SHARE
    if (isLarge) return storeLarge(request)
    unwritten[lane].add(id)
    return storeSmall(request).finally(() => noteWritten(request))
  }

  return {
    /** Stores a request together with others. Its error harms no other one. */
    async ingest(request: IngestRequest): Promise<Ingested> {
      for (;;) {
        const tried = await store(request)
        if (!('excluded' in tried)) return tried
        await delay(EXCLUDED_MS * (1 + Math.random()))
      }
    },
    /**
     * Resolves when jobs that are fetched from this lane now would soon be written. While a batch is being written, the
     * next one gathers in the queue, where every worker can fetch it; it is fetched during the last write of the batch.
     */
    async ready(lane: Lane): Promise<void> {
      while (unwritten[lane].size > 0) await laneWritten.promise
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
