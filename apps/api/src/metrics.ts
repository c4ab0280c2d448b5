// The metrics of the API.
import type { Metrics } from '@sluice/ops'

export type ApiMetrics = ReturnType<typeof createApiMetrics>

/** Creates the metrics of an API replica. */
export function createApiMetrics(metrics: Metrics) {
  return {
    requests: metrics.counter({ name: 'requests_total', help: 'HTTP requests, by status.', labels: ['status'] }),
    requestTime: metrics.histogram({
      name: 'request_seconds',
      help: 'Time from the head of a request to its answer.',
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    }),
    problems: metrics.counter({
      name: 'problems_total',
      help: 'Requests that were answered with a problem, by its code.',
      labels: ['code'],
    }),
    accepted: metrics.counter({ name: 'accepted_total', help: 'Threads that were enqueued.' }),
    failedJobsMoved: metrics.counter({
      name: 'failed_jobs_moved_total',
      help: 'Failed jobs that operators had retried or discarded.',
      labels: ['kind'],
    }),
    enqueueTime: metrics.histogram({
      name: 'enqueue_seconds',
      help: 'Time that Redis took to stamp a request and add its job.',
      buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2],
    }),
  }
}
