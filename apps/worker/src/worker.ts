// Connects queue and store: stores the threads of fetched jobs, and returns their receipts.
import type { Thread } from '@sluice/contract'
import type { Logger } from '@sluice/ops'
import {
  type Away,
  type Consumer,
  type ConsumerOptions,
  createConsumer,
  type FetchedJob,
  makeReceipt,
  PartlyStoredError,
  type Receipt,
  type Worked,
} from '@sluice/queue'
import type { StoreRequest } from '@sluice/store'
import type { Ingest, Ingested, IngestRequest } from './ingest.ts'
import type { WorkerMetrics } from './metrics.ts'
import { createPutBack, isStoreAway, type ProbeStore } from './store-away.ts'

/** The dependencies of a worker. */
export interface WorkerDeps
  extends Pick<
    ConsumerOptions,
    'keys' | 'redis' | 'resultBounds' | 'claimBytes' | 'failedBytes' | 'concurrency' | 'bytesInHand'
  > {
  ingest: Ingest
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
