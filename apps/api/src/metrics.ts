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

/** The metrics that are read at each scrape. Redis has the load of the queue. */
const SAMPLED = [
  { name: 'awaited_jobs', help: 'Jobs that callers wait for.' },
  { name: 'body_bytes', help: 'Memory that is reserved for request bodies in flight.' },
  { name: 'spill_bytes', help: 'Size of the temporary files that keep the unread answers of imports.' },
  { name: 'connections', help: 'Open connections of callers.' },
  { name: 'queue_threads', help: 'Threads that are accepted and not yet completed.' },
  { name: 'queue_bytes', help: 'Bytes of Redis that these threads take.' },
  { name: 'queue_interactive_threads', help: 'Those of them for which a caller waits.' },
] as const

type Readers = Readonly<Record<(typeof SAMPLED)[number]['name'], () => number | Promise<number>>>

/** Registers the metrics that are read at each scrape. */
export function sampleMetrics(metrics: Metrics, readers: Readers): void {
  for (const { name, help } of SAMPLED) metrics.sampledGauge({ name, help, read: readers[name] })
}
