import type { Logger } from '@sluice/ops'
import {
  type Consumer,
  createConsumer,
  createGroupCommit,
  type EndedJob,
  makeReceipt,
  type QueueKeys,
  type Redis,
  type ResultBounds,
  type Results,
  type TakenJob,
  type Worked,
} from '@sluice/queue'
import type { Ingested, IngestRequest } from './ingest.ts'
import { createPauseWhileAway } from './pause-while-away.ts'
import type { WorkerMetrics } from './worker-metrics.ts'

export interface WorkerParts {
  queue: string
  keys: QueueKeys
  redis: Redis
  results: Results
  resultBounds: ResultBounds
  workers: number
  concurrency: number
  ingest: (request: IngestRequest) => Promise<Ingested>
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
    for (const id of await results.end(jobs, resultBounds)) {
      log.warn({ jobId: id }, 'job.failed_and_forgotten')
      await parts.forgetJob(id)
    }
    return jobs.map(() => true)
  })
  const pauseWhileAway = createPauseWhileAway(parts.pingStore, log)
  const consumer = createConsumer({
    ...parts,
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
  const { tenant, stamp, thread } = job.data
  const { id, redelivered, suspect } = job
  const ingested = await ingest({ id, tenant, stamp, redelivered, suspect, thread })
  if ('away' in ingested) {
    onAway()
    metrics.putBack.inc()
    log.warn(about(job), 'job.put_back')
    return ingested
  }
  const receipt = makeReceipt(thread, ingested.answer)
  const { outcome } = receipt.source
  metrics.stored.inc({ outcome })
  const took = Math.round((performance.now() - began) * 10) / 10
  log.info({ ...about(job), outcome, quotes: thread.quotes.length, queuedMs, durationMs: took }, 'job.stored')
  return { receipt }
}

function about({ id, data, attempt }: TakenJob) {
  const { service, externalId } = data.thread.source
  return { jobId: id, requestId: data.requestId, tenant: data.tenant, service, externalId, attempt }
}
