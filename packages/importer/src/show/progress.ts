// Shows how far an import has got.
import { describeSeconds, drawProgress, formatNumber, mebibytes } from '@sluice/terminal'
import { countThreads, type Tally } from '../account/ledger.ts'
import type { Done } from '../input/read-counted.ts'

/** The state from which the display is drawn. It is read at each tick. */
export interface ProgressState {
  bytes: Done
  /** The number of combined pieces, or 0 of 0 if the format needs no sort. */
  sorted: Done
  tally: Tally
}

export type ProgressDisplay = ReturnType<typeof showProgress>

interface ProgressOptions extends Omit<Parameters<typeof drawProgress>[0], 'view'> {
  state: () => ProgressState
}

/** Shows progress until it is disposed of. */
export function showProgress({ state, ...how }: ProgressOptions) {
  const began = performance.now()
  let begin = pointOf(state(), 0)
  const view = () => {
    const point = pointOf(state(), (performance.now() - began) / 1_000)
    if (point.phase !== begin.phase) begin = point
    const json = viewOf(state(), point, begin)
    const share = json.totalBytes === 0 ? undefined : json.share
    return { line: plainLine(json), share, json }
  }
  return drawProgress({ ...how, view })
}

type Point = ReturnType<typeof pointOf>

/** `share`: how much of the phase is done, from 0 to 1. `settled`: stored, rejected or checked. */
function pointOf({ bytes, sorted, tally }: ProgressState, seconds: number) {
  const phase = sorted.total === 0 ? 'reading' : sorted.done === 0 ? 'sorting' : 'sending'
  const share =
    phase === 'sending'
      ? sorted.done / sorted.total
      : bytes.total === 0
        ? 0
        : bytes.done / bytes.total
  return { phase, share: Math.min(1, share), seconds, settled: countThreads(tally) }
}

type View = ReturnType<typeof viewOf>

/** Returns the rate of the phase up to now, and the time that remains at this rate. */
function viewOf({ bytes, tally }: ProgressState, { settled, ...point }: Point, begin: Point) {
  const seconds = point.seconds - begin.seconds
  const done = point.share - begin.share
  return {
    ...point,
    bytes: bytes.done,
    totalBytes: bytes.total,
    threads: tally.threads,
    threadsPerSecond: seconds > 0 ? (settled - begin.settled) / seconds : 0,
    ...(done > 0 && point.share < 1 && { secondsLeft: (seconds * (1 - point.share)) / done }),
  }
}

/** What went wrong comes first, because the end of the line may be cut. */
const COUNTED = ['rejected', 'created', 'updated', 'unchanged'] as const

function plainLine({
  phase,
  share,
  bytes,
  totalBytes,
  threads,
  threadsPerSecond,
  secondsLeft,
}: View): string {
  const read =
    totalBytes === 0 ? mebibytes(bytes) : `${Math.floor(share * 100)} %, ${mebibytes(totalBytes)}`
  const counts = COUNTED.filter((name) => threads[name] > 0).map(
    (name) => `, ${formatNumber(threads[name])} ${name}`,
  )
  const left = secondsLeft === undefined ? '' : `, ${describeSeconds(secondsLeft)} left`
  return `${phase} ${read}${left}, ${formatNumber(Math.round(threadsPerSecond))} threads/s${counts.join('')}`
}
