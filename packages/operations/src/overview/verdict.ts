// The verdict: what is wrong with a Sluice, the worst first. Dashboard, `sluice status` and `GET /admin/overview` show it.
import { ALIVE_MS, type Finding, type Overview, type SeenProcess } from '@sluice/contract'

/** The thresholds of findings that have an alert, too: docs/monitoring/alerts.yml. A test compares them. */
export const THRESHOLDS = { oldestSeconds: { interactive: 15, bulk: 900 } } as const

/** Threads fail now if one failed within this time. */
const FAILING_MS = 10_000
/** A share of a bound that leaves little time to act. */
const NEARLY_FULL = 0.8
/**
 * If the clock of Redis is this far behind the stamps, the stamps (places in the order of acceptance) are no longer
 * times.
 */
const CLOCK_BEHIND_MS = 5_000
/** A worker that has had one job for this time is stuck, if MongoDB is there. */
const STUCK_MS = 60_000

/** What a verdict is made of. */
export type Facts = Omit<Overview, 'verdict'>

/** Judges an overview: returns what is wrong, the worst first. */
export function judge(facts: Facts): Finding[] {
  return [
    ...judgeStore(facts),
    ...judgeProcesses(facts),
    ...judgeRedis(facts),
    ...judgeQueue(facts),
    ...judgeFailures(facts),
  ]
}

function finding(code: Finding['code'], text: string, page: string): Finding {
  // Failed threads stay until an operator decides about them, so they alone are no problem of the service.
  return { code, level: code === 'failed_threads' ? 'note' : 'problem', text, page }
}

function judgeStore({ storeAwayMs, storeAway, processes, queued }: Facts): Finding[] {
  if (storeAwayMs === undefined) return []
  const workers = alive(processes, 'worker')
  const lost = workers.filter((worker) => worker.storeAwayMs !== undefined).length
  const who = workers.length > 1 ? `, for ${lost} of ${workers.length} workers` : ''
  const why = storeAway === undefined ? '' : ` (${storeAway.reason.replace(/^MongoDB is away: /, '')})`
  const text = `MongoDB has been away for ${duration(storeAwayMs)}${who}${why}; ${waits(queued)}`
  return [finding('store_away', text, '/jobs?state=waiting')]
}

function judgeProcesses({ processes, queued, storeAwayMs, at }: Facts): Finding[] {
  const found: Finding[] = []
  for (const kind of ['api', 'worker'] as const) {
    const name = kind === 'api' ? 'API' : kind
    const seen = processes.filter((one) => one.kind === kind)
    const [living, gone] = [alive(processes, kind), seen.filter(({ seenMsAgo }) => seenMsAgo >= ALIVE_MS)]
    if (living.length === 0) {
      const since = gone.length === 0 ? '' : ` for ${duration(Math.min(...gone.map(({ seenMsAgo }) => seenMsAgo)))}`
      const effect = kind === 'api' ? 'nothing is accepted' : waits(queued)
      found.push(
        finding('process_missing', `No ${name} has shown a sign of life${since}; ${effect}`, '/overview#processes'),
      )
      continue
    }
    for (const { id, host, pid, seenMsAgo } of unreplaced(gone, living, Date.parse(at)))
      found.push(
        finding(
          'process_gone',
          `The ${name} ${host}:${pid} has shown no sign of life for ${duration(seenMsAgo)}`,
          `/processes/${id}`,
        ),
      )
  }
  if (storeAwayMs !== undefined) return found
  for (const { id, host, pid, slowJobs = [] } of alive(processes, 'worker')) {
    const [slowest] = slowJobs.toSorted((one, other) => other.activeMs - one.activeMs)
    if (slowest !== undefined && slowest.activeMs >= STUCK_MS)
      found.push(
        finding(
          'process_stuck',
          `The worker ${host}:${pid} has worked on ${slowest.name} for ${duration(slowest.activeMs)}`,
          `/processes/${id}`,
        ),
      )
  }
  return found
}

/** Returns the processes that are gone and that no process of their kind has replaced since. */
function unreplaced(gone: readonly SeenProcess[], living: readonly SeenProcess[], now: number): SeenProcess[] {
  const lastSeen = ({ seenMsAgo }: SeenProcess) => now - seenMsAgo
  const first = Math.min(...gone.map(lastSeen))
  const replacements = living.filter(({ startedAt }) => Date.parse(startedAt) > first).length
  return gone.toSorted((one, other) => lastSeen(other) - lastSeen(one)).slice(replacements)
}

function judgeRedis({ redis, processes }: Facts): Finding[] {
  const found: Finding[] = []
  const { usedBytes, maxBytes, replicas, clockBehindMs = 0 } = redis
  const share = maxBytes > 0 ? usedBytes / maxBytes : 0
  const used = `${megabytes(usedBytes)} of ${megabytes(maxBytes)}`
  if (share >= 1) found.push(finding('redis_full', `Redis is full (${used}) and refuses writes`, '/overview'))
  else if (share >= NEARLY_FULL) found.push(finding('redis_full', `Redis is nearly full: ${used}`, '/overview'))
  const wanted = Math.max(0, ...alive(processes, 'api').map(({ redisReplicas = 0 }) => redisReplicas))
  if (replicas !== undefined && replicas < wanted)
    found.push(
      finding('redis_replicas', `Redis has ${replicas} of ${wanted} replicas: requests are not confirmed`, '/overview'),
    )
  if (clockBehindMs >= CLOCK_BEHIND_MS)
    found.push(finding('redis_clock', `The clock of Redis is ${duration(clockBehindMs)} behind`, '/overview'))
  return found
}

function judgeQueue({ queued, paused, load, processes, at }: Facts): Finding[] {
  const found: Finding[] = []
  const [bounds] = alive(processes, 'api').flatMap(({ queueBounds }) => queueBounds ?? [])
  if (load !== undefined && bounds !== undefined) {
    const share = Math.max(load.threads / bounds.threads, load.bytes / bounds.bytes)
    const of = `${number(load.threads)} of ${number(bounds.threads)} threads, ${megabytes(load.bytes)} of ${megabytes(bounds.bytes)}`
    if (share >= NEARLY_FULL)
      found.push(
        finding('queue_full', `The queue is ${share >= 0.99 ? 'full' : 'nearly full'}: ${of}`, '/jobs?state=waiting'),
      )
  }
  for (const lane of ['interactive', 'bulk'] as const) {
    const pause = paused[lane]
    if (pause !== undefined) {
      const since = pause.since === undefined ? '' : ` for ${duration(Date.parse(at) - Date.parse(pause.since))}`
      const by = pause.by === undefined ? '' : ` by ${pause.by}`
      const why = pause.why === undefined ? '' : ` (${pause.why})`
      found.push(finding('lane_paused', `The ${lane} lane has been paused${since}${by}${why}`, '/overview'))
    }
    const oldest = Math.max(
      0,
      ...queued.filter((of) => of.lane === lane && of.state !== 'failed').map(({ oldestMs }) => oldestMs),
    )
    if (oldest > THRESHOLDS.oldestSeconds[lane] * 1_000)
      found.push(
        finding(
          'jobs_old',
          `The oldest ${lane} job has waited for ${duration(oldest)}`,
          `/jobs?state=waiting&lane=${lane}`,
        ),
      )
  }
  const versions = new Set(processes.filter(({ seenMsAgo }) => seenMsAgo < ALIVE_MS).map(({ version }) => version))
  if (versions.size > 1)
    found.push(
      finding(
        'versions_differ',
        `Processes of several versions run: ${[...versions].sort().join(', ')}`,
        '/overview#processes',
      ),
    )
  return found
}

function judgeFailures({ queued, lastFailureMs }: Facts): Finding[] {
  const failed = queued.reduce((sum, { state, threads }) => sum + (state === 'failed' ? threads : 0), 0)
  if (failed === 0) return []
  const threads = failed === 1 ? '1 thread' : `${number(failed)} threads`
  if (lastFailureMs !== undefined && lastFailureMs < FAILING_MS)
    return [
      finding(
        'threads_failing',
        `Threads are failing: ${threads} could not be stored, the last one ${duration(lastFailureMs)} ago`,
        '/failures',
      ),
    ]
  return [
    finding(
      'failed_threads',
      `${threads} could not be stored, and ${failed === 1 ? 'waits' : 'wait'} for an operator`,
      '/failures',
    ),
  ]
}

function alive(processes: readonly SeenProcess[], of: SeenProcess['kind']): SeenProcess[] {
  return processes.filter(({ kind, seenMsAgo }) => kind === of && seenMsAgo < ALIVE_MS)
}

function waits(queued: Facts['queued']): string {
  const jobs = queued.reduce((sum, { state, jobs }) => sum + (state === 'waiting' || state === 'delayed' ? jobs : 0), 0)
  return jobs === 1 ? '1 job waits' : `${number(jobs)} jobs wait`
}

const number = (value: number) => Math.round(value).toLocaleString('en')
const megabytes = (bytes: number) => `${number(bytes / 1e6)} MB`

const UNITS = Object.entries({ d: 86_400_000, h: 3_600_000, min: 60_000, s: 1_000 })

/** A duration in the largest unit of which it has at least two: `90 s`, `3 h`. */
export function duration(ms: number): string {
  const [unit, length] = UNITS.find(([, least]) => ms >= 2 * least) ?? ['s', 1_000]
  return `${Math.max(Math.floor(ms / length), 0)} ${unit}`
}
