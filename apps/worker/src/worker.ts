import type { Thread } from '@sluice/contract'
import type { Logger } from '@sluice/ops'
import {
  type Batches,
  type Consumer,
  type ConsumerOptions,
  createConsumer,
  createGroupCommit,
  type EndedJob,
  makeReceipt,
  PartlyStoredError,
  type QueueKeys,
  type Receipt,
  type Redis,
  type ResultBounds,
  type Results,
  requestIdsOf,
  type TakenJob,
  type Worked,
} from '@sluice/queue'
import type { Ingest, Ingested, IngestRequest } from './ingest.ts'
import { noteParts } from './note-parts.ts'
import { createPauseWhileAway } from './pause-while-away.ts'
import type { WorkerMetrics } from './worker-metrics.ts'

export interface WorkerParts {
  keys: QueueKeys
  redis: Redis
  results: Results
  resultBounds: ResultBounds
  inHand: ConsumerOptions['inHand']
  ingest: Ingest
  batches: Batches
  /** Removes a failed job for good. */
  forgetJob: (id: string) => Promise<void>
  /** Resolves when the store answers. */
  pingStore: () => Promise<void>
  metrics: WorkerMetrics
  log: Logger
}

/** Builds the process's part between queue and store: takes jobs, has them stored, and lets the result be known. */
export function buildWorker(parts: WorkerParts): Consumer {
  const { results, resultBounds, log, metrics } = parts
  const end = createGroupCommit(async (jobs: EndedJob[]) => {
    await noteParts(parts.batches, jobs)
    for (const id of await results.end(jobs, resultBounds)) {
      log.warn({ jobId: id }, 'job.failed_and_forgotten')
      await parts.forgetJob(id).catch((err) => log.warn({ err, jobId: id }, 'job.not_forgotten'))
    }
    return jobs.map(() => true)
  })
  const pauseWhileAway = createPauseWhileAway(parts.pingStore, log)
  const consumer = createConsumer({
    ...parts,
    ready: parts.ingest.ready,
    work: (job) => work(job, parts, () => pauseWhileAway(consumer)),
    end: async (job) => void (await end(job)),
    onFailed(job, reason, final) {
      metrics.failed.inc({ final: String(final) })
      log[final ? 'error' : 'warn']({ ...about(job), reason }, final ? 'job.failed' : 'job.try_failed')
    },
    onError: (err) => log.error({ err }, 'queue.error'),
  })
  return consumer
}

async function work(job: TakenJob, { ingest, metrics, log }: WorkerParts, onAway: () => void): Promise<Worked> {
  const began = performance.now()
  const queuedMs = Date.now() - job.enqueuedAt
  metrics.queueTime.observe(queuedMs / 1000)
  const settled = await Promise.allSettled(ingestRequestsOf(job).map(ingest.ingest))
  if (settled.some((one) => one.status === 'fulfilled' && 'away' in one.value)) {
    onAway()
    metrics.putBack.inc()
    log.warn(about(job), 'job.put_back')
    return { away: true }
  }
  const receipts = settled.map((one, at) => receiptOf(one, job.data.threads[at]))
  for (const receipt of receipts) if (receipt !== null) metrics.stored.inc({ outcome: receipt.source.outcome })
  const stored = receipts.filter((receipt) => receipt !== null)
  if (stored.length < receipts.length) throw new PartlyStoredError(reasonOf(settled), receipts)
  const durationMs = Math.round((performance.now() - began) * 10) / 10
  log.info({ ...about(job), ...counted(stored), queuedMs, durationMs }, 'job.stored')
  return { receipts: stored }
}

function ingestRequestsOf(job: TakenJob): IngestRequest[] {
  const { lane, redelivered, suspect, digest } = job
  const { tenant, stamp, threads } = job.data
  const ids = requestIdsOf(job.id, job.data)
  return threads.map((thread, at) => ({
    id: ids[at] ?? job.id,
    tenant,
    stamp: stamp + at,
    redelivered,
    suspect,
    lane,
    thread,
    ...(digest !== undefined && { digest }),
  }))
}

function receiptOf(one: PromiseSettledResult<Ingested>, thread: Thread | undefined): Receipt | null {
  if (one.status === 'rejected' || thread === undefined || 'away' in one.value) return null
  return makeReceipt(thread, one.value.answer)
}

function reasonOf(settled: PromiseSettledResult<Ingested>[]): string {
  const failed = settled.find((one) => one.status === 'rejected')
  return failed?.reason instanceof Error ? failed.reason.message : String(failed?.reason)
}

function about({ id, data, attempt }: TakenJob) {
  const { tenant, requestId, threads } = data
  const first = threads.length === 1 ? threads[0]?.source : undefined
  const what =
    first === undefined ? { threads: threads.length } : { service: first.service, externalId: first.externalId }
  return { jobId: id, requestId, tenant, ...what, attempt }
}

function counted(receipts: Receipt[]) {
  const quotes = receipts.reduce((sum, receipt) => sum + receipt.outcomes.length, 0)
  const [first] = receipts
  return receipts.length === 1 && first !== undefined ? { outcome: first.source.outcome, quotes } : { quotes }
}
