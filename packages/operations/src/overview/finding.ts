// What all parts of the verdict share: the facts, the thresholds, and functions that count in the
// facts or put them and their numbers into words. The command line loads only this file for its
// words.
import {
  ALIVE_MS,
  type Finding,
  type Retention,
  type SeenProcess,
  type Status,
} from '@sluice/contract'

/**
 * The thresholds of findings that also have an alert in docs/monitoring/alerts.yml. A test compares
 * them.
 */
export const THRESHOLDS = {
  oldestSeconds: { interactive: 15, bulk: 900 },
  /** The part of all requests that are refused. */
  refusedShare: 0.01,
  /** The part of the waiting callers that time out. */
  timedOutShare: 0.01,
  /** The most time that a small write should take. */
  storeSeconds: 1,
} as const

/** A share of a bound that leaves little time to act. */
export const NEARLY_FULL = 0.8

/** The facts from which a verdict is made. */
export type Facts = Omit<Status, 'verdict' | 'lastMinutes' | 'lastHour'> &
  Partial<Pick<Status, 'lastHour'>>

/**
 * Findings that by themselves are no problem of the service. For example, failed threads stay until
 * an operator decides about them, and a caller could use a revoked key for ever.
 */
const NOTES: ReadonlySet<Finding['code']> = new Set([
  'failed_threads',
  'keys_expire',
  'key_revoked',
  'retention',
])

/** @param page the page that shows more. */
export function finding(code: Finding['code'], text: string, page = '/overview'): Finding {
  return { code, level: NOTES.has(code) ? 'note' : 'problem', text, page }
}

export type Findings = Generator<Finding, void>

/** Returns an API that lives and reports the bounds of the queue. */
export function livingApi(processes: readonly SeenProcess[]): SeenProcess | undefined {
  return alive(processes, 'api').find(({ queueBounds }) => queueBounds !== undefined)
}

/** Returns the living processes of a kind. */
export function alive(processes: readonly SeenProcess[], of: SeenProcess['kind']): SeenProcess[] {
  return processes.filter(({ kind, seenMsAgo }) => kind === of && seenMsAgo < ALIVE_MS)
}

/**
 * Counts the threads of a lane that are accepted, and have neither completed nor failed
 * permanently.
 */
export function loadOf(queued: Facts['queued'], lane: Facts['queued'][number]['lane']): number {
  return queued.reduce(
    (sum, of) => sum + (of.lane === lane && of.state !== 'failed' ? of.threads : 0),
    0,
  )
}

/** Says how many jobs wait. */
export function waitingText(queued: Facts['queued']): string {
  const jobs = queued.reduce(
    (sum, { state, jobs }) => sum + (state === 'waiting' || state === 'delayed' ? jobs : 0),
    0,
  )
  return jobs === 1 ? '1 job waits' : `${shown(jobs)} jobs wait`
}

/** Says how many threads were due, and how many of them were deleted. */
export function retentionWords({ at, due, deleted }: Retention, now: string): string {
  const ago = duration(Date.parse(now) - Date.parse(at))
  return `Retention: ${shown(deleted)} of ${shown(due)} threads that were due ${ago} ago are deleted`
}

/** Says for how long a lane has been paused, by whom and why. */
export function pauseWords(
  { since, by, why, until }: NonNullable<Facts['paused']['bulk']>,
  at: string,
): string {
  const time = since === undefined ? '' : ` for ${duration(Date.parse(at) - Date.parse(since))}`
  const end =
    until === undefined ? '' : `; it ends in ${duration(Date.parse(until) - Date.parse(at))}`
  return `${time}${by === undefined ? '' : ` by ${by}`}${why === undefined ? '' : ` (${why})`}${end}`
}

/** Says what Redis lost, and what to do. */
export function lossWords({
  at,
  since,
  threads,
  failed,
  backTo,
}: NonNullable<Facts['redisLoss']>): string {
  const minute = (moment: string) => moment.slice(0, 16).replace('T', ' ').concat(' UTC')
  const happened = backTo ? `went back to its state of ${minute(backTo)}` : 'lost its data'
  const waited = `${shown(threads)} accepted ${threads === 1 ? 'thread' : 'threads'} waited`
  const gone = failed > 0 ? `, and ${shown(failed)} had failed` : ''
  return `Redis ${happened} at ${minute(at)}: ${waited}${gone}; post again what got a 202 since ${minute(since)}`
}

/** A whole number with separators. */
export const shown = (value: number) => Math.round(value).toLocaleString('en')
export const megabytes = (bytes: number) => `${shown(bytes / 1e6)} MB`

const UNITS = Object.entries({ d: 86_400_000, h: 3_600_000, min: 60_000, s: 1_000 })

/** A duration, in the largest unit of which it has at least two: `90 s`, `3 h`. */
export function duration(ms: number): string {
  const [unit, length] = UNITS.find(([, least]) => ms >= 2 * least) ?? ['s', 1_000]
  return `${Math.max(Math.floor(ms / length), 0)} ${unit}`
}
