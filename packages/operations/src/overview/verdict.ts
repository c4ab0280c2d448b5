// The verdict: what is wrong with a Sluice, the worst first. Dashboard, `sluice status` and `GET /admin/overview` show it.
import { ALIVE_MS, codeOf, type Finding, type SeenProcess } from '@sluice/contract'
import {
  alive,
  duration,
  type Facts,
  type Findings,
  FLICKER_MS,
  finding,
  livingApi,
  loadOf,
  lossWords,
  megabytes,
  NEARLY_FULL,
  shown,
  THRESHOLDS,
  waits,
} from './finding.ts'
import { judgeCallers } from './judge-callers.ts'
import { judgeKeys } from './judge-keys.ts'
import { judgeClocks, judgeProcesses } from './judge-processes.ts'
import { judgeRedis, judgeRedisFaults } from './judge-redis.ts'

/** MongoDB is unstable if it flickers so often in a minute. */
const UNSTABLE = 3
/** Threads fail now if one failed within this time. */
const FAILING_MS = 10_000

/** Judges an overview: returns what is wrong, the worst first. */
export function judge(facts: Facts): Finding[] {
  return [
    ...judgeIdentity(facts),
    ...judgeStore(facts),
    ...judgeRedisFaults(facts),
    ...judgeProcesses(facts),
    ...judgeRedis(facts),
    ...judgeClocks(facts),
    ...judgeCallers(facts),
    ...judgeQueue(facts),
    ...judgeFailures(facts),
    ...judgeKeys(facts),
  ]
}

function* judgeIdentity({ otherStore, redisLoss, at }: Facts): Findings {
  if (redisLoss !== undefined) yield finding('redis_lost', lossWords(redisLoss))
  if (otherStore === undefined) return
  const ago = duration(Date.parse(at) - Date.parse(otherStore.at))
  const stopped = `The ${otherStore.process} stopped ${ago} ago: ${otherStore.text.replace(/\.$/, '')}`
  yield finding('other_store', stopped, '/overview#processes')
}

function* judgeStore({ storeAwayMs, storeAway, processes, queued, lastHour }: Facts): Findings {
  const workers = alive(processes, 'worker')
  // `storeAwayMs` begins with the first of several losses that follow each other soon.
  const now = workers.flatMap((worker) => worker.storeAwayMs ?? [])
  if (storeAwayMs === undefined || (now.length > 0 && Math.max(...now) < FLICKER_MS)) {
    const flickers = Math.max(0, ...workers.map(({ lastMinute = {} }) => lastMinute.storeFlickers ?? 0))
    const unstable = `The connection to MongoDB is unstable: a worker lost it ${flickers} times in the last minute, each time for less than 2 s`
    if (flickers >= UNSTABLE) yield finding('store_unstable', unstable, '/overview#processes')
    return storeAwayMs === undefined ? yield* judgeSlowness(workers, lastHour) : undefined
  }
  const lost = workers.filter((worker) => worker.storeAwayMs !== undefined).length
  const who = workers.length > 1 ? `, for ${lost} of ${workers.length} workers` : ''
  const why = storeAway === undefined ? '' : ` (${storeAway.reason.replace(/^MongoDB is unavailable: /, '')})`
  const text = `MongoDB has been away for ${duration(storeAwayMs)}${who}${why}; ${waits(queued)}`
  yield finding('store_away', text, '/jobs?state=waiting')
}

function* judgeSlowness(workers: readonly SeenProcess[], lastHour: Facts['lastHour']): Findings {
  const ms = Math.max(0, ...workers.map(({ storeMs = 0 }) => storeMs))
  if (ms <= THRESHOLDS.storeSeconds * 1000) return
  const sum = (name: string) => workers.reduce((all, { recent }) => all + (recent?.[name] ?? 0), 0)
  const seconds = (of: number) => `${(of / 1000).toFixed(1)} s`
  const batch = sum('batches') > 0 ? `, and a batch ${seconds(sum('batchMs') / sum('batches'))}` : ''
  const before = lastHour?.storeTime
  const usual = before ? ` (in the last hour, half of the threads took less than ${seconds(before.p50 * 1000)})` : ''
  yield finding('store_slow', `MongoDB is slow: a small write takes ${seconds(ms)}${batch}${usual}`)
}

function* judgeQueue({ queued, paused: pauses, load, processes, at }: Facts): Findings {
  const bounds = livingApi(processes)?.queueBounds
  const share = load && bounds ? Math.max(load.threads / bounds.threads, load.bytes / bounds.bytes) : 0
  if (load && bounds && share >= NEARLY_FULL) {
    const threads = `${shown(load.threads)} of ${shown(bounds.threads)} threads`
    const text = `The queue is ${share >= 0.99 ? 'full' : 'nearly full'}: ${threads}, ${megabytes(load.bytes)} of ${megabytes(bounds.bytes)}`
    yield finding('queue_full', text, '/jobs?state=waiting')
  }
  const [interactive, most] = [loadOf(queued, 'interactive'), bounds?.interactive]
  if (most !== undefined && interactive >= NEARLY_FULL * most) {
    const text = `MAX_WAITING_SECONDS bounds the interactive lane to ${shown(most)} threads, and it has ${shown(interactive)}`
    yield finding('queue_full', text, '/jobs?state=waiting&lane=interactive')
  }
  for (const lane of ['interactive', 'bulk'] as const) {
    const pause = pauses[lane]
    const waiting = `/jobs?state=waiting&lane=${lane}`
    const paused = `The ${lane} lane has been paused`
    if (pause !== undefined) yield finding('lane_paused', paused + pauseWords(pause, at), waiting)
    const unfinished = queued.filter((of) => of.lane === lane && of.state !== 'failed')
    const oldest = Math.max(0, ...unfinished.map(({ oldestMs }) => oldestMs))
    const text = `The oldest ${lane} job has waited for ${duration(oldest)}`
    if (oldest > THRESHOLDS.oldestSeconds[lane] * 1_000) yield finding('jobs_old', text, waiting)
  }
  const living = processes.filter(({ seenMsAgo }) => seenMsAgo < ALIVE_MS)
  const text = `Processes of several versions run: ${[...new Set(living.map(codeOf))].sort().join(', ')}`
  // A revision that is not known is no difference.
  const revisions = living.flatMap(({ revision }) => revision || [])
  if ([living.map(({ version }) => version), revisions].some((all) => new Set(all).size > 1))
    yield finding('versions_differ', text, '/overview#processes')
}

function* judgeFailures({ queued, lastFailureMs, processes }: Facts): Findings {
  const refusing = alive(processes, 'worker').filter(({ uncompleted }) => uncompleted !== undefined)
  const times = refusing.reduce((sum, { lastMinute }) => sum + (lastMinute?.uncompleted ?? 0), 0)
  const refusal = `Jobs could not be completed, ${shown(times)} times in the last minute: ${refusing[0]?.uncompleted}`
  if (refusing.length > 0) yield finding('completions_refused', refusal, '/jobs?state=waiting')
  const failed = queued.reduce((sum, { state, threads }) => sum + (state === 'failed' ? threads : 0), 0)
  const jobs = queued.reduce((sum, { state, jobs }) => sum + (state === 'failed' ? jobs : 0), 0)
  const stored = `Failed jobs whose threads are stored, but which could not be completed: ${shown(jobs)}`
  if (failed === 0 && jobs > 0) yield finding('failed_threads', stored, '/failures')
  if (failed === 0) return
  const threads = failed === 1 ? '1 thread' : `${shown(failed)} threads`
  const waiting = `${threads} could not be stored, and ${failed === 1 ? 'waits' : 'wait'} for an operator`
  if (lastFailureMs === undefined || lastFailureMs >= FAILING_MS) yield finding('failed_threads', waiting, '/failures')
  else {
    const text = `Threads are failing: ${threads} could not be stored, the last one ${duration(lastFailureMs)} ago`
    yield finding('threads_failing', text, '/failures')
  }
}

/** Says for how long a lane has been paused at a moment, by whom, and why. */
export function pauseWords({ since, by, why, until }: NonNullable<Facts['paused']['bulk']>, at: string): string {
  const time = since === undefined ? '' : ` for ${duration(Date.parse(at) - Date.parse(since))}`
  const end = until === undefined ? '' : `; it ends in ${duration(Date.parse(until) - Date.parse(at))}`
  return `${time}${by === undefined ? '' : ` by ${by}`}${why === undefined ? '' : ` (${why})`}${end}`
}
