// Declares the metrics of the API, and samples some of them at each scrape.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { QueueState } from '@sluice/operations'
import { type MetricsOf, metric, mongoMetrics, type openMetrics, SECONDS } from '@sluice/process'
import { LANES } from '@sluice/queue'

export const apiMetrics = {
  requests: metric.counter({
    name: 'sluice_requests_total',
    help: 'HTTP requests. `route`: the path in OpenAPI, or `none` if the request was refused before. `status`: also `gone` if the caller hung up, `late` if it did so after waiting for a second.',
    labels: ['route', 'method', 'status'],
  }),
  requestTime: metric.histogram({
    name: 'sluice_request_seconds',
    help: 'Time from the head of a request to its answer.',
    labels: ['route'],
    buckets: SECONDS,
  }),
  problems: metric.counter({
    name: 'sluice_problems_total',
    help: 'Requests that were answered with a problem.',
    labels: ['code', 'route', 'method'],
  }),
  keysRefused: metric.counter({
    name: 'sluice_keys_refused_total',
    help: 'Requests that got a 403. `why`: `unknown` (no key, or a wrong one), `revoked`, `expired`, `gone` (MongoDB no longer has a key that worked), or `role`.',
    labels: ['why'],
  }),
  accepted: metric.counter({
    name: 'sluice_threads_accepted_total',
    help: 'Threads that were enqueued.',
  }),
  ...mongoMetrics,
  awaitedJobs: metric.gauge({ name: 'sluice_awaited_jobs', help: 'Jobs that callers wait for.' }),
  connections: metric.gauge({ name: 'sluice_connections', help: 'Open connections of callers.' }),
  redisLostAt: metric.gauge({
    name: 'sluice_redis_lost_timestamp_seconds',
    help: 'When Redis last lost data, or 0 if it did not in the last day.',
  }),
  bodyBytes: metric.gauge({
    name: 'sluice_body_bytes',
    help: 'Memory reserved for request bodies; at most `MAX_BODIES_BYTES`.',
  }),
  jobs: metric.gauge({
    name: 'sluice_jobs',
    help: 'Jobs. `state`: `waiting`, `delayed` (between two attempts), `active`, `failed`.',
    labels: ['lane', 'state'],
  }),
  threads: metric.gauge({
    name: 'sluice_threads',
    help: 'Threads of these jobs. For failed jobs: those that could not be stored.',
    labels: ['lane', 'state'],
  }),
  oldestJob: metric.gauge({
    name: 'sluice_oldest_job_seconds',
    help: 'Age of the oldest of these jobs since it was accepted, retried by an operator, or failed. 0 without a job.',
    labels: ['lane', 'state'],
  }),
  paused: metric.gauge({
    name: 'sluice_lane_paused',
    help: '1 while the lane is paused.',
    labels: ['lane'],
  }),
  queueBytes: metric.gauge({
    name: 'sluice_queue_bytes',
    help: 'Bytes of Redis for jobs that are not completed; at most `MAX_QUEUE_BYTES`.',
  }),
}

export type ApiMetrics = MetricsOf<typeof apiMetrics>

/** The gauges that describe only this replica. */
const OWN_GAUGES = ['awaitedJobs', 'connections', 'bodyBytes', 'redisLostAt'] as const

type SampledApi = Record<(typeof OWN_GAUGES)[number], () => number> & {
  queueState: () => Promise<QueueState>
}

/** Reads the gauges of an API replica at each scrape. */
export function sampleApi(
  { metrics, sample }: ReturnType<typeof openMetrics<typeof apiMetrics>>,
  api: SampledApi,
) {
  for (const name of OWN_GAUGES) sample([metrics[name]], () => metrics[name].set(api[name]()))
  sample(
    [metrics.queueBytes, metrics.jobs, metrics.threads, metrics.oldestJob, metrics.paused],
    async () => {
      const { queued, paused, load } = await api.queueState()
      metrics.queueBytes.set(load.bytes)
      for (const { lane, state, jobs, threads, oldestMs } of queued) {
        metrics.jobs.set({ lane, state }, jobs)
        metrics.threads.set({ lane, state }, threads)
        metrics.oldestJob.set({ lane, state }, oldestMs / 1000)
      }
      for (const lane of LANES) metrics.paused.set({ lane }, lane in paused ? 1 : 0)
    },
  )
}

/** The event loop's delay is measured this often. */
const RESOLUTION_MS = 50

/**
 * Measures the 99th percentile of the event loop's delay, each second for the last second, until
 * the process ends.
 */
export function watchLoopDelay(): { p99Ms: number } {
  const delay = { p99Ms: 0 }
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  // Not yet: building the app blocks the event loop, but is over before the first caller comes.
  setImmediate(() => histogram.enable())
  setInterval(() => {
    delay.p99Ms = histogram.percentile(99) / 1e6 - RESOLUTION_MS
    histogram.reset()
  }, 1_000).unref()
  return delay
}
