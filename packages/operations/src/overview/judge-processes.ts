// The part of the verdict about processes: which ones are missing, gone or stuck, crash repeatedly,
// or have a wrong clock. All times are Redis's.
import { ALIVE_MS, type Finding, type SeenProcess } from '@sluice/contract'
import { duration } from '../format.ts'
import { alive, type Facts, type Findings, finding, waitingText } from './finding.ts'

/** A worker that has worked on one job for this time is stuck, unless MongoDB is unavailable. */
const STUCK_MS = 60_000
/** Half of the 60 s by which clocks may differ: docs/operate/mongodb.md#configure-it. */
const CLOCK_MS = 30_000
/** Processes crash repeatedly if this number of them died after each had replaced a dead one. */
const DEAD_REPLACEMENTS = 2

/** The life of a process, in ms since 1970. `until`: its last heartbeat. */
interface Life {
  process: SeenProcess
  from: number
  until: number
}

export function* judgeProcesses(facts: Facts): Findings {
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
 * Returns whether processes crash repeatedly. This ends when the newest process has lived for twice
 * as long as every process that died, and long enough for a death to be noticed.
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
    Math.max(ALIVE_MS, ...again.map((life) => 2 * lengthOf(life)))
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
export function judgeClocks({ processes }: Facts): Finding[] {
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
