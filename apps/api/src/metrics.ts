// What an API replica counts: its metrics, those that are read when Prometheus asks, and what it
// reports in its heartbeats. Refusals by tenant and refused keys are only in the heartbeats:
// tenants and keys are unbounded, and labels of metrics must not be.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { ProcessReport } from '@sluice/boot/heartbeats'
import { type CountsBy, PROBLEMS, type RefusedKeyCount, refusedNameOf } from '@sluice/contract'
import type { KnownKey, RefusedKey } from '@sluice/credentials/keys'
import { peaksOf, type QueueState } from '@sluice/operations'
import {
  type MetricsOf,
  metric,
  mongoMetrics,
  type openMetrics,
  SECONDS,
  totalOf,
} from '@sluice/process'
import { LANES } from '@sluice/queue'
import type { RequestContext } from './request/request-context.ts'

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
    help: 'Threads that were enqueued, without `acceptance_unknown`.',
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
  // Later, because building the app blocks the event loop, which no caller notices.
  setImmediate(() => histogram.enable())
  setInterval(() => {
    delay.p99Ms = histogram.percentile(99) / 1e6 - RESOLUTION_MS
    histogram.reset()
  }, 1_000).unref()
  return delay
}

/**
 * Problems of correct requests: the queue, a tenant or the process has reached a bound, a server is
 * unavailable, or the API is at fault.
 */
export const UNSERVED: ReadonlySet<string> = new Set([
  ...['queue_full', 'tenant_share', 'overloaded'],
  ...['queue_unavailable', 'keys_unavailable', 'store_unavailable', 'internal'],
])
const REFUSALS = new Set([...UNSERVED, 'rate_limited'])
const codesOf = (of: number) =>
  new Set(Object.entries(PROBLEMS).flatMap(([code, { status }]) => (status === of ? code : [])))
const TIMED_OUT = codesOf(504)
const FORBIDDEN = codesOf(403)
const INVALID = codesOf(400)
const POSTS: ReadonlySet<unknown> = new Set(['/sources', '/sources:batch'])

const MOST_TENANTS = 1_000

type Refusals = Map<`refused:${string}`, number>

function count(refusals: Refusals, name: `refused:${string}`): void {
  const counted = refusals.get(name)
  if (counted !== undefined || refusals.size < MOST_TENANTS) refusals.set(name, (counted ?? 0) + 1)
}

type ProblemContext = Pick<RequestContext, 'tenant' | 'route'> & {
  request: { method?: string | undefined }
}

/** Counts problems in a metric, and refusals by tenant in maps. */
export function countProblems({ problems }: Pick<ApiMetrics, 'problems'>) {
  const refusals: Record<'byTenant' | 'byReason', Refusals> = {
    byTenant: new Map(),
    byReason: new Map(),
  }
  return {
    refusals,
    note(code: string, { tenant, route, request }: ProblemContext): void {
      problems.inc({ code, route, method: request.method ?? '' })
      const name = refusedNameOf(tenant)
      // Operators have no tenant. Callers whose key was not checked yet have none, either.
      if (REFUSALS.has(code) && tenant !== '') count(refusals.byTenant, `refused:${name}`)
      if (UNSERVED.has(code)) count(refusals.byReason, `refused:${code}:${name}`)
    },
  }
}

/**
 * Operators see a refused key for this time after its last refusal, and only the keys with the most
 * refusals.
 */
const SHOWN_MS = 5 * 60_000
const SHOWN_KEYS = 10
/** While this number of keys is counted, no further key is added. */
const MOST_KEYS = 1_000

/**
 * Counts the requests that were refused because of their key: by reason in a metric, and by key for
 * operators.
 */
export function countRefusedKeys({ keysRefused }: Pick<ApiMetrics, 'keysRefused'>) {
  const byKey = new Map<string, Omit<RefusedKeyCount, 'lastMsAgo'> & { lastAt: number }>()
  return {
    /**
     * @param key undefined if the header was missing. A known key was refused because of its role.
     */
    note(key: KnownKey | RefusedKey | undefined): void {
      const why = key?.outcome === 'known' ? 'role' : (key?.why ?? 'unknown')
      keysRefused.inc({ why })
      const { keyId, tenant = '' } = key ?? {}
      if (keyId === undefined || why === 'unknown') return
      if (byKey.size >= MOST_KEYS && !byKey.has(keyId)) return
      const requests = (byKey.get(keyId)?.requests ?? 0) + 1
      byKey.set(keyId, { keyId, tenant, why, requests, lastAt: performance.now() })
    },
    /** Lists the recently refused keys, those with the most refusals first. */
    list(): RefusedKeyCount[] {
      const now = performance.now()
      for (const [keyId, { lastAt }] of byKey) if (now - lastAt > SHOWN_MS) byKey.delete(keyId)
      const counts = [...byKey.values()].sort((one, other) => other.requests - one.requests)
      return counts
        .slice(0, SHOWN_KEYS)
        .map(({ lastAt, ...count }) => ({ ...count, lastMsAgo: now - lastAt }))
    },
  }
}

/** The outcomes of callers that waited for a result. */
const WAITED: Readonly<Record<string, string>> = {
  ...{ 'POST /sources 200': 'answered', 'POST /sources 500': 'answered' },
  ...{ 'POST /sources 504': 'timedOut', 'POST /sources late': 'timedOut' },
}

/** Reads the content of an API replica's heartbeat. */
export async function readApi(
  { accepted, problems, requests }: Pick<ApiMetrics, 'accepted' | 'problems' | 'requests'>,
  { byTenant, byReason }: ReturnType<typeof countProblems>['refusals'],
  queueState: () => Promise<QueueState>,
  bounds: Pick<ProcessReport, 'queueBounds' | 'tenantShare' | 'redisReplicas'>,
): Promise<ProcessReport> {
  const { queued } = await queueState()
  const problemsOf = (codes: ReadonlySet<string>) =>
    totalOf(problems, ({ code }) => codes.has(String(code)))
  const totals: Record<CountsBy<'api'>, number> = {
    accepted: await totalOf(accepted),
    refused: await problemsOf(REFUSALS),
    timedOut: await problemsOf(TIMED_OUT),
    forbidden: await problemsOf(FORBIDDEN),
    invalid: await totalOf(
      problems,
      ({ code, route, method }) =>
        method === 'POST' && POSTS.has(route) && INVALID.has(String(code)),
    ),
  }
  const waited = (outcome: string) =>
    totalOf(requests, ({ method, route, status }) => {
      return WAITED[`${method} ${route} ${status}`] === outcome
    })
  return {
    totals,
    manyTotals: Object.fromEntries(byTenant),
    recentTotals: {
      requests: await totalOf(requests),
      answered: await waited('answered'),
      timedOut: await waited('timedOut'),
      refused: await problemsOf(UNSERVED),
      ...Object.fromEntries(byReason),
    },
    peaks: peaksOf(queued),
    ...bounds,
  }
}
