// What an API replica reports in its heartbeats: counts by name, refusals by tenant and by reason,
// and refused keys. Metrics can't have labels for tenants and keys, because their number is
// unbounded.
import type { ProcessReport } from '@sluice/boot/heartbeats'
import { type CountsBy, PROBLEMS, type RefusedKeyCount } from '@sluice/contract'
import type { KnownKey, RefusedKey } from '@sluice/credentials/keys'
import { peaksOf, type QueueState } from '@sluice/operations'
import { totalOf } from '@sluice/process'
import type { ApiMetrics } from './metrics.ts'
import type { RequestContext } from './request/request-context.ts'

/**
 * Problems which mean that the queue, a tenant or the process has reached a bound, or that a server
 * is unavailable.
 */
export const CAPACITY: ReadonlySet<string> = new Set([
  ...['queue_full', 'tenant_share', 'overloaded'],
  ...['queue_unavailable', 'keys_unavailable', 'store_unavailable'],
])
const REFUSALS = new Set([...CAPACITY, 'rate_limited'])
const codesOf = (of: number) =>
  new Set(Object.entries(PROBLEMS).flatMap(([code, { status }]) => (status === of ? code : [])))
const TIMED_OUT = codesOf(504)
const FORBIDDEN = codesOf(403)
const INVALID = codesOf(400)
const POSTS: ReadonlySet<unknown> = new Set(['/sources', '/sources:batch'])

const MOST_TENANTS = 1_000
/** A heartbeat has at most this many characters of a tenant's name. */
const SHOWN_TENANT = 64

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
      const name = tenant.slice(0, SHOWN_TENANT)
      // Operators have no tenant, nor have callers whose key was not checked yet.
      if (REFUSALS.has(code) && tenant !== '') count(refusals.byTenant, `refused:${name}`)
      if (CAPACITY.has(code)) count(refusals.byReason, `refused:${code}:${name}`)
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
export function countRefusedKeys(
  { keysRefused }: Pick<ApiMetrics, 'keysRefused'>,
  now = () => performance.now(),
) {
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
      byKey.set(keyId, { keyId, tenant, why, requests, lastAt: now() })
    },
    /** Lists the recently refused keys, those with the most refusals first. */
    list(): RefusedKeyCount[] {
      for (const [keyId, { lastAt }] of byKey) if (now() - lastAt > SHOWN_MS) byKey.delete(keyId)
      const counts = [...byKey.values()].sort((one, other) => other.requests - one.requests)
      return counts
        .slice(0, SHOWN_KEYS)
        .map(({ lastAt, ...count }) => ({ ...count, lastMsAgo: now() - lastAt }))
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
      refused: await problemsOf(CAPACITY),
      ...Object.fromEntries(byReason),
    },
    peaks: peaksOf(queued),
    ...bounds,
  }
}
