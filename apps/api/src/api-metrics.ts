import type { Metrics } from '@sluice/ops'

/** What an API replica counts. */
export type ApiMetrics = ReturnType<typeof createApiMetrics>

/** Makes an API replica's counters. */
export function createApiMetrics(metrics: Metrics) {
  return {
    requests: metrics.counter({ name: 'requests_total', help: 'HTTP requests, by status.', labels: ['status'] }),
    requestTime: metrics.histogram({
      name: 'request_seconds',
      help: 'From the head of a request to its answer.',
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    }),
    accepted: metrics.counter({ name: 'accepted_total', help: 'Requests that were put into the queue.' }),
    enqueueTime: metrics.histogram({
      name: 'enqueue_seconds',
      help: 'How long Redis took to give a request its place and take its job.',
      buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2],
    }),
  }
}
