// The verdict: what is wrong with a Sluice, the worst first. The dashboard, `sluice status` and
// `GET /admin/overview` show it. All times are Redis's.
import { FLICKER_MS, RECENT_SECONDS } from '@sluice/boot/heartbeats'
import {
  ALIVE_MS,
  codeOf,
  type Finding,
  type RefusedKeyCount,
  type SeenProcess,
} from '@sluice/contract'
import {
  alive,
  duration,
  type Facts,
  type Findings,
  finding,
  livingApi,
  loadOf,
  lossWords,
  megabytes,
  NEARLY_FULL,
  pauseWords,
  retentionWords,
  shown,
  THRESHOLDS,
  waitingText,
} from './finding.ts'

/** MongoDB is unstable if it becomes unavailable for a moment this often in a minute. */
const UNSTABLE = 3
/** Threads are failing now if one failed within this time. */
const FAILING_MS = 10_000

/** Judges an overview: returns what is wrong, the worst first. */
export function judge(facts: Facts): Finding[] {
  return [
    ...judgeIdentity(facts),
    ...judgeStore(facts),
    ...judgeRefusals(facts),
    ...judgeProcesses(facts),
    ...judgeRedis(facts),
    ...judgeClocks(facts),
    ...judgeCallers(facts),
    ...judgeQueue(facts),
    ...judgeFailures(facts),
    ...judgeKeys(facts),
    ...judgeRetention(facts),
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
  // `storeAwayMs` counts from the first of several losses in quick succession.
  const now = workers.flatMap((worker) => worker.storeAwayMs ?? [])
  if (storeAwayMs === undefined || (now.length > 0 && Math.max(...now) < FLICKER_MS)) {
    const flickers = Math.max(
      0,
      ...workers.map(({ lastMinute, recent }) =>
        recent?.storeFlickers ? (lastMinute?.storeFlickers ?? 0) : 0,
      ),
    )
    const unstable = `The connection to MongoDB is unstable: a worker lost it ${flickers} times in the last minute, each time for less than 2 s`
    if (flickers >= UNSTABLE) yield finding('store_unstable', unstable, '/overview#processes')
    return storeAwayMs === undefined ? yield* judgeSlowness(workers, lastHour) : undefined
  }
  const lost = workers.filter((worker) => worker.storeAwayMs !== undefined).length
  const who = workers.length > 1 ? `, for ${lost} of ${workers.length} workers` : ''
  const why =
    storeAway === undefined ? '' : ` (${storeAway.reason.replace(/^MongoDB is unavailable: /, '')})`
  const text = `MongoDB has been unavailable for ${duration(storeAwayMs)}${who}${why}; ${waitingText(queued)}`
  yield finding('store_away', text, '/jobs?state=waiting')
}

function* judgeSlowness(workers: readonly SeenProcess[], lastHour: Facts['lastHour']): Findings {
  const ms = Math.max(0, ...workers.map(({ storeMs = 0 }) => storeMs))
  if (ms <= THRESHOLDS.storeSeconds * 1000) return
  const sum = (name: string) => workers.reduce((all, { recent }) => all + (recent?.[name] ?? 0), 0)
  const seconds = (of: number) => `${(of / 1000).toFixed(1)} s`
  const batch =
    sum('batches') > 0 ? `, and a batch ${seconds(sum('batchMs') / sum('batches'))}` : ''
  const before = lastHour?.storeTime
  const usual = before
    ? ` (in the last hour, half of the threads took less than ${seconds(before.p50 * 1000)})`
    : ''
  yield finding('store_slow', `MongoDB is slow: a small write takes ${seconds(ms)}${batch}${usual}`)
}

function* judgeQueue({ queued, paused: pauses, load, processes, at }: Facts): Findings {
  const bounds = livingApi(processes)?.queueBounds
  const share =
    load && bounds ? Math.max(load.threads / bounds.threads, load.bytes / bounds.bytes) : 0
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
  // Ignore revisions that are not known.
  const revisions = living.flatMap(({ revision }) => revision || [])
  if ([living.map(({ version }) => version), revisions].some((all) => new Set(all).size > 1))
    yield finding('versions_differ', text, '/overview#processes')
}

function* judgeFailures({ queued, lastFailureMs, processes }: Facts): Findings {
  const refusing = alive(processes, 'worker').filter(({ uncompleted }) => uncompleted !== undefined)
  const times = refusing.reduce((sum, { lastMinute }) => sum + (lastMinute?.uncompleted ?? 0), 0)
  const refusal = `Jobs could not be completed, ${shown(times)} times in the last minute: ${refusing[0]?.uncompleted}`
  if (refusing.length > 0) yield finding('completions_refused', refusal, '/jobs?state=waiting')
  const failed = queued.reduce(
    (sum, { state, threads }) => sum + (state === 'failed' ? threads : 0),
    0,
  )
  const jobs = queued.reduce((sum, { state, jobs }) => sum + (state === 'failed' ? jobs : 0), 0)
  const done = `Failed jobs without a thread to store, each with its reason: ${shown(jobs)}`
  if (failed === 0 && jobs > 0) yield finding('failed_threads', done, '/failures')
  if (failed === 0) return
  const threads = failed === 1 ? '1 thread' : `${shown(failed)} threads`
  const waiting = `${threads} could not be stored, and ${failed === 1 ? 'waits' : 'wait'} for an operator`
  if (lastFailureMs === undefined || lastFailureMs >= FAILING_MS)
    yield finding('failed_threads', waiting, '/failures')
  else {
    const text = `Threads are failing: ${threads} could not be stored, the last one ${duration(lastFailureMs)} ago`
    yield finding('threads_failing', text, '/failures')
  }
}

/**
 * If Redis's clock is this far behind the last stamp, stamps (places in the order of acceptance)
 * are no longer times.
 */
const CLOCK_BEHIND_MS = 5_000

const REFUSING = [
  ['Redis', 'redis_unfit', 'refusedCommands'],
  ['MongoDB', 'store_unfit', 'refusedByStore'],
] as const

/**
 * Finds why Redis refuses writes or may lose them, and commands for which a user of Redis or
 * MongoDB lacks the right. Processes may stop for these reasons, or seem dead.
 */
function* judgeRefusals({ redis: { faults = [] }, processes }: Facts): Findings {
  for (const fault of faults) yield finding('redis_unfit', fault.replace(/\.$/, ''))
  for (const [server, code, field] of REFUSING) {
    const refused = processes.find((one) => one.seenMsAgo < ALIVE_MS && one[field] !== undefined)
    // The process that reads the overview may lack the same right.
    if (!refused || faults.some((fault) => fault.startsWith(`${server} refuses commands`))) continue
    const text = `${server} refuses commands of the ${named(refused)}: ${refused[field]}`
    yield finding(code, text, '/overview#processes')
  }
}

/** Finds other problems of Redis. */
function* judgeRedis({ redis, processes }: Facts): Findings {
  const { usedBytes, maxBytes, replicas, clockBehindMs = 0 } = redis
  const share = maxBytes > 0 ? usedBytes / maxBytes : 0
  const used = `${megabytes(usedBytes)} of ${megabytes(maxBytes)}`
  if (share >= 1) yield finding('redis_full', `Redis is full (${used}) and refuses writes`)
  else if (share >= NEARLY_FULL) yield finding('redis_full', `Redis is nearly full: ${used}`)
  const wanted = Math.max(
    0,
    ...alive(processes, 'api').map(({ redisReplicas = 0 }) => redisReplicas),
  )
  if (replicas !== undefined && replicas < wanted)
    yield finding(
      'redis_replicas',
      `Redis has ${replicas} of ${wanted} replicas: requests are not confirmed`,
    )
  if (clockBehindMs >= CLOCK_BEHIND_MS)
    yield finding('redis_clock', `The clock of Redis is ${duration(clockBehindMs)} behind`)
}

const SHOWN_REASONS = 3

/**
 * Finds correct requests that were recently refused or failed, and callers that waited in vain.
 */
function* judgeCallers({ processes }: Facts): Findings {
  const recent = alive(processes, 'api').flatMap(({ recent = {} }) => Object.entries(recent))
  const sums = new Map<string, number>()
  for (const [name, count] of recent) sums.set(name, (sums.get(name) ?? 0) + count)
  const sumOf = (name: string) => sums.get(name) ?? 0
  const late = sumOf('timedOut')
  const waited = late + sumOf('answered')
  const inVain = `${share(late, waited)} of the callers that waited got no result in time, in the last ${RECENT_SECONDS} s`
  if (late > waited * THRESHOLDS.timedOutShare)
    yield finding('callers_time_out', inVain, '/jobs?state=waiting')
  const [refused, requests] = [sumOf('refused'), sumOf('requests')]
  if (refused <= requests * THRESHOLDS.refusedShare) return
  const reasons = [...sums]
    .filter(([name]) => name.startsWith('refused:'))
    .sort(([, one], [, other]) => other - one)
    .slice(0, SHOWN_REASONS)
    .map(([name]) =>
      name.replace(/^refused:([^:]*):(.*)$/s, (_, code, tenant) =>
        tenant ? `${code} (${tenant})` : code,
      ),
    )
  const text = `${share(refused, requests)} of the requests of the last ${RECENT_SECONDS} s were refused: ${reasons.join(', ')}`
  yield finding('requests_refused', text, '/overview#tenants')
}

/** Makes for example `67 % (2 of 3)`, so that people see how many it is. */
const share = (part: number, all: number) =>
  `${Math.ceil((part / all) * 100)} % (${shown(part)} of ${shown(Math.max(all, part))})`

/** Adds up the refused keys of all APIs. */
function refusedKeysOf(processes: readonly SeenProcess[]): RefusedKeyCount[] {
  const sums = new Map<string, RefusedKeyCount>()
  for (const one of alive(processes, 'api').flatMap(({ refusedKeys = [] }) => refusedKeys)) {
    const name = `${one.why} ${one.keyId}`
    const { requests = 0, lastMsAgo = Infinity } = sums.get(name) ?? {}
    const sum = { requests: requests + one.requests, lastMsAgo: Math.min(lastMsAgo, one.lastMsAgo) }
    sums.set(name, { ...one, ...sum })
  }
  return [...sums.values()]
}

/** The verdict names this number of keys that expire soon. */
const NAMED_KEYS = 3
/** A lost key that was refused longer ago than this may be in MongoDB again. */
const GONE_MS = 60_000

/**
 * Judges the keys of callers: keys that expire soon, and keys that are still used although they no
 * longer work.
 */
function* judgeKeys({ processes, expiringKeys = [], at }: Facts): Findings {
  const named = expiringKeys.slice(0, NAMED_KEYS).map(({ keyId, tenant, name, expiresAt }) => {
    const left = duration(Date.parse(expiresAt) - Date.parse(at))
    return `${name}${tenant && ` of ${tenant}`} (${keyId}) in ${left}`
  })
  const others = expiringKeys.length - named.length
  const list = [...named, ...(others > 0 ? [`${shown(others)} more`] : [])].join(', ')
  const subject =
    expiringKeys.length === 1 ? '1 key expires' : `${shown(expiringKeys.length)} keys expire`
  if (named.length > 0)
    yield finding('keys_expire', `${subject} within a week: ${list}; rotate them`)
  const refusedKeys = refusedKeysOf(processes)
  const gone = refusedKeys
    .filter(({ why, lastMsAgo }) => why === 'gone' && lastMsAgo < GONE_MS)
    .map(({ keyId, tenant }) => `${keyId} of ${tenant}`)
  const some = gone.slice(0, NAMED_KEYS).join(', ') + (gone.length > NAMED_KEYS ? ' …' : '')
  const lost = `Keys that worked are no longer in MongoDB: ${some}; restore the collection \`keys\``
  if (gone.length > 0) yield finding('keys_gone', lost)
  for (const { keyId, tenant, why, requests, lastMsAgo } of refusedKeys) {
    // A caller that uses a key of another role sees its mistake immediately.
    if (why === 'role') continue
    const key = `The key ${keyId}${tenant && ` of ${tenant}`}`
    const times = requests === 1 ? '1 request' : `${shown(requests)} requests`
    const refused = `${times} refused, the last one ${duration(lastMsAgo)} ago`
    const page = tenant === '' ? undefined : `/tenants/${encodeURIComponent(tenant)}`
    const expired = `${key} has expired, and is still used: ${refused}; create another one for its caller, or revoke it`
    if (why === 'expired') yield finding('key_expired', expired, page)
    if (why === 'revoked')
      yield finding('key_revoked', `${key} is revoked, and is still used: ${refused}`, page)
  }
}

function* judgeRetention({ retention, at }: Facts): Findings {
  if (retention && retention.due > 0)
    yield finding('retention', retentionWords(retention, at), '/operations')
}

/** A worker that has worked on one job for this time is stuck, unless MongoDB is unavailable. */
const STUCK_MS = 60_000
/** Half of the 60 s by which clocks may differ: docs/reliability.md#a-clock-is-wrong. */
const CLOCK_MS = 30_000
/** Processes crash repeatedly if this number of them died after each had replaced a dead one. */
const DEAD_REPLACEMENTS = 2

/** The life of a process, in ms since 1970. `until`: its last heartbeat. */
interface Life {
  process: SeenProcess
  from: number
  until: number
}

function* judgeProcesses(facts: Facts): Findings {
  const { processes, queued, storeAwayMs, at } = facts
  const lives = processes.map((process): Life => {
    return {
      process,
      from: Date.parse(process.startedAt),
      until: Date.parse(at) - process.seenMsAgo,
    }
  })
  for (const kind of ['api', 'worker'] as const) {
    const ofKind = lives.filter(({ process }) => process.kind === kind)
    const gone = ofKind.filter(isGone).toSorted((one, other) => one.until - other.until)
    const [first, last] = [gone[0], gone.at(-1)]
    const since = last === undefined ? '' : ` for ${duration(last.process.seenMsAgo)}`
    const effect = kind === 'api' ? 'nothing is accepted' : waitingText(queued)
    const missing = `No ${nameOf(kind)} has shown a sign of life${since}; ${effect}`
    const isMissing = gone.length === ofKind.length
    if (isMissing) yield finding('process_missing', missing, '/overview#processes')
    const left = unreplaced(ofKind)
    if (first && last && crashesAgain(ofKind, first, last, left)) {
      const often = `died ${gone.length} times in ${duration(last.until - first.until)}`
      const lived = `the last one lived ${duration(last.until - last.from)}, until ${duration(last.process.seenMsAgo)} ago`
      const text = `${kind === 'api' ? 'APIs' : 'Workers'} ${often}; ${lived}`
      yield finding('crash_loop', text, `/processes/${last.process.id}`)
    } else if (!isMissing) yield* judgeGone(left)
  }
  if (storeAwayMs === undefined) yield* judgeStuck(facts)
}

const isGone = ({ process }: Life) => process.seenMsAgo >= ALIVE_MS
const nameOf = (kind: SeenProcess['kind']) => (kind === 'api' ? 'API' : kind)
const named = ({ kind, host, pid }: SeenProcess) => `${nameOf(kind)} ${host}:${pid}`

/**
 * Returns the dead processes that no process has replaced. A process that starts replaces the last
 * one that died before it.
 */
function unreplaced(ofKind: readonly Life[]): SeenProcess[] {
  const starts = ofKind.map(({ from }) => ({ at: from, dead: undefined }))
  const deaths = ofKind.filter(isGone).map(({ until, process }) => ({ at: until, dead: process }))
  const left: SeenProcess[] = []
  for (const { dead } of [...starts, ...deaths].sort((one, other) => one.at - other.at)) {
    if (dead) left.push(dead)
    else left.pop()
  }
  return left
}

/**
 * Returns whether processes crash repeatedly. This ends when the newest process has lived for a
 * quarter longer than every process that died, and long enough for a death to be noticed.
 */
function crashesAgain(
  ofKind: readonly Life[],
  first: Life,
  last: Life,
  left: readonly SeenProcess[],
): boolean {
  const lengthOf = ({ from, until }: Life) => until - from
  const again = ofKind.filter((life) => isGone(life) && life.from > first.until)
  if (again.length < DEAD_REPLACEMENTS) return false
  const heirs = ofKind.filter((life) => !isGone(life) && life.from > last.until)
  const isOver =
    Math.max(0, ...heirs.map(lengthOf)) >=
    Math.max(ALIVE_MS, ...again.map((life) => 1.25 * lengthOf(life)))
  return left.length > 0 || !isOver
}

function* judgeGone(left: readonly SeenProcess[]): Findings {
  const last = left.at(-1)
  if (last === undefined) return
  const time = duration(last.seenMsAgo)
  if (left.length === 1)
    yield finding(
      'process_gone',
      `The ${named(last)} has shown no sign of life for ${time}`,
      `/processes/${last.id}`,
    )
  else {
    const text = `${left.length} ${nameOf(last.kind)}s have shown no sign of life, the last one (${last.host}:${last.pid}) for ${time}`
    yield finding('process_gone', text, '/overview#processes')
  }
}

function* judgeStuck({ processes }: Facts): Findings {
  for (const worker of alive(processes, 'worker')) {
    const [slowest] = (worker.slowJobs ?? []).toSorted(
      (one, other) => other.activeMs - one.activeMs,
    )
    if (slowest === undefined || slowest.activeMs < STUCK_MS) continue
    const text = `The ${named(worker)} has worked on ${slowest.name} for ${duration(slowest.activeMs)}`
    yield finding('process_stuck', text, `/processes/${worker.id}`)
  }
}

/**
 * Judges the clocks of all living processes. If many differ from Redis's clock, Redis's may be the
 * wrong one.
 */
function judgeClocks({ processes }: Facts): Finding[] {
  const aheadOf = ({ clockAheadMs = 0 }: SeenProcess) => clockAheadMs
  const wrong = processes
    .filter((one) => one.seenMsAgo < ALIVE_MS && Math.abs(aheadOf(one)) >= CLOCK_MS)
    .sort((one, other) => Math.abs(aheadOf(other)) - Math.abs(aheadOf(one)))
  const [worst] = wrong
  if (worst === undefined) return []
  const others =
    wrong.length > 1
      ? `, and ${wrong.length - 1} more differ by ${duration(CLOCK_MS)} at least`
      : ''
  const by = `${duration(Math.abs(aheadOf(worst)))} ${aheadOf(worst) > 0 ? 'ahead of' : 'behind'}`
  const text = `The clock of the ${named(worst)} is ${by} Redis’s${others}: synchronize them (NTP)`
  return [finding('clock_wrong', text, `/processes/${worst.id}`)]
}
