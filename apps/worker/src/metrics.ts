// Declares the metrics of a worker process.
import type { Reading } from '@sluice/operations'
import { type MetricsOf, metric, mongoMetrics, SECONDS, totalsOf } from '@sluice/process'

/** Buckets for times in which jobs may wait for long. */
const LONG_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800] as const

export const workerMetrics = {
  stored: metric.counter({
    name: 'sluice_threads_stored_total',
    help: 'Threads that were stored, by the outcome for their source (created, updated, unchanged). Each counts once, when its job completes or fails for good.',
    labels: ['outcome'],
  }),
  threadsFailed: metric.counter({
    name: 'sluice_threads_failed_total',
    help: 'Threads that could not be stored when their job failed for good. They count again if an operator retries the job.',
  }),
  failed: metric.counter({
    name: 'sluice_jobs_failed_total',
    help: 'Tries that failed. `final="true"`: the job failed for good.',
    labels: ['final'],
  }),
  putBack: metric.counter({
    name: 'sluice_jobs_put_back_total',
    help: 'Jobs that went back to waiting because MongoDB was away.',
  }),
  queueTime: metric.histogram({
    name: 'sluice_job_queue_seconds',
    help: 'Time in the queue: from enqueueing a job until a worker fetches it for the first time.',
    labels: ['lane'],
    buckets: LONG_SECONDS,
  }),
  storeTime: metric.histogram({
    name: 'sluice_job_store_seconds',
    help: 'Time in the store: from fetching a job until its threads are stored, the wait for a batch included.',
    labels: ['lane'],
    buckets: SECONDS,
  }),
  totalTime: metric.histogram({
    name: 'sluice_job_seconds',
    help: 'End to end: from enqueueing a job until its threads are stored, all tries and retries included.',
    labels: ['lane'],
    buckets: LONG_SECONDS,
  }),
  batchSize: metric.histogram({
    name: 'sluice_batch_threads',
    help: 'Threads in one batch.',
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
  }),
  batchTime: metric.histogram({
    name: 'sluice_batch_store_seconds',
    help: 'Time to store a batch.',
    buckets: SECONDS,
  }),
  storeAvailable: metric.gauge({
    name: 'sluice_store_available',
    help: '1 if MongoDB commits the writes of this worker, else 0.',
  }),
  ...mongoMetrics,
}

export type WorkerMetrics = MetricsOf<typeof workerMetrics>

/** Reads the content of a worker's heartbeat. */
export async function readWorker(
  { stored, threadsFailed, queueTime, storeTime }: WorkerMetrics,
  state: Pick<Reading, 'storeAwayMs' | 'slowJobs'>,
): Promise<Reading> {
  const buckets = (name: 'queue' | 'store') => (labels: { le?: unknown }) =>
    labels.le === undefined ? undefined : (`${name}:${labels.le}` as const)
  const [outcomes, failed, queue, store] = await Promise.all([
    totalsOf(stored, ({ outcome }) => `stored:${outcome}` as const),
    totalsOf(threadsFailed, () => 'failed'),
    totalsOf(queueTime, buckets('queue')),
    totalsOf(storeTime, buckets('store')),
  ])
  return { totals: { ...outcomes, ...failed, ...queue, ...store }, ...state }
}
