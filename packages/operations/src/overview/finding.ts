// What all parts of the verdict share: its facts, its thresholds, and how it says numbers and durations.
import { ALIVE_MS, type Finding, type Overview, type SeenProcess, type Status } from '@sluice/contract'

/** The thresholds of findings that have an alert, too: docs/monitoring/alerts.yml. A test compares them. */
export const THRESHOLDS = {
  oldestSeconds: { interactive: 15, bulk: 900 },
  /** Parts of all requests, and of the callers that waited. */
  refusedShare: 0.01,
  timedOutShare: 0.01,
  /** What a small write may take. */
  storeSeconds: 1,
} as const

/** A share of a bound that leaves little time to act. */
export const NEARLY_FULL = 0.8

/** Findings about what callers get look back this far: callers that come rarely are seen, and it is over soon. */
export const RECENT_SECONDS = 10

/** What a verdict is made of. */
export type Facts = Omit<Overview, 'verdict'> & Partial<Pick<Status, 'lastHour'>>

/**
 * What alone is no problem of the service. Failed threads stay until an operator decides about them, and whoever has a
 * revoked key could make a problem of it for ever.
 */
const NOTES: ReadonlySet<Finding['code']> = new Set(['failed_threads', 'keys_expire', 'key_revoked'])

/** @param page shows more. */
export function finding(code: Finding['code'], text: string, page = '/overview'): Finding {
  return { code, level: NOTES.has(code) ? 'note' : 'problem', text, page }
}

/** A MongoDB that is away for less than this time flickers. */
export const FLICKER_MS = 2_000

export type Findings = Generator<Finding, void>

/** Returns an API that lives and reports the bounds of the queue. */
export function livingApi(processes: readonly SeenProcess[]): SeenProcess | undefined {
  return alive(processes, 'api').find(({ queueBounds }) => queueBounds !== undefined)
}

/** Returns the processes of a kind that live. */
export function alive(processes: readonly SeenProcess[], of: SeenProcess['kind']): SeenProcess[] {
  return processes.filter(({ kind, seenMsAgo }) => kind === of && seenMsAgo < ALIVE_MS)
}

/** Counts the threads of a lane that are accepted and neither completed nor failed. */
export function loadOf(queued: Facts['queued'], lane: Facts['queued'][number]['lane']): number {
  return queued.reduce((sum, of) => sum + (of.lane === lane && of.state !== 'failed' ? of.threads : 0), 0)
}

/** Says how many jobs wait. */
export function waits(queued: Facts['queued']): string {
  const jobs = queued.reduce((sum, { state, jobs }) => sum + (state === 'waiting' || state === 'delayed' ? jobs : 0), 0)
  return jobs === 1 ? '1 job waits' : `${shown(jobs)} jobs wait`
}

/** A whole number with separators. */
export const shown = (value: number) => Math.round(value).toLocaleString('en')
export const megabytes = (bytes: number) => `${shown(bytes / 1e6)} MB`

const UNITS = Object.entries({ d: 86_400_000, h: 3_600_000, min: 60_000, s: 1_000 })

/** A duration in the largest unit of which it has at least two: `90 s`, `3 h`. */
export function duration(ms: number): string {
  const [unit, length] = UNITS.find(([, least]) => ms >= 2 * least) ?? ['s', 1_000]
  return `${Math.max(Math.floor(ms / length), 0)} ${unit}`
}

/** Says what Redis lost, and what to do. */
export function lossWords({ at, since, threads, failed, backTo }: NonNullable<Facts['redisLoss']>): string {
  const minute = (moment: string) => moment.slice(0, 16).replace('T', ' ').concat(' UTC')
  const happened = backTo ? `went back to its state of ${minute(backTo)}` : 'lost its data'
  const waited = `${shown(threads)} accepted ${threads === 1 ? 'thread' : 'threads'} waited`
  const gone = failed > 0 ? `, and ${shown(failed)} had failed` : ''
  return `Redis ${happened} at ${minute(at)}: ${waited}${gone}; post again what got a 202 since ${minute(since)}`
}
