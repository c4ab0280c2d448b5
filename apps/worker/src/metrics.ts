// The metrics of a worker process.
import type { Metrics } from '@sluice/ops'

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** A worker's metrics. */
export type WorkerMetrics = ReturnType<typeof createWorkerMetrics>

/** Registers a worker's metrics. */
export function createWorkerMetrics(metrics: Metrics) {
  return {
    stored: metrics.counter({
      name: 'threads_stored_total',
      help: 'Threads that were stored, by the outcome for their source. Each counts once, when its job completes or fails for good.',
      labels: ['outcome'],
    }),
    failed: metrics.counter({
      name: 'jobs_failed_total',
      help: 'Tries that failed; final: the job failed for good.',
      labels: ['final'],
    }),
    putBack: metrics.counter({
      name: 'jobs_put_back_total',
      help: 'Jobs that went back to waiting because MongoDB was away.',
    }),
    queueTime: metrics.histogram({
      name: 'job_queue_seconds',
      help: 'Time from enqueueing a job until a worker fetches it for the first time.',
      buckets: SECONDS,
    }),
    batchSize: metrics.histogram({
      name: 'batch_requests',
      help: 'Requests in one batch.',
      buckets: [1, 2, 4, 8, 16, 32, 64, 128],
    }),
    batchTime: metrics.histogram({
      name: 'batch_store_seconds',
      help: 'Time to store a batch.',
      buckets: SECONDS,
    }),
  }
}
