// Shows how far an import has got: by a bar on a terminal, otherwise by a line every few seconds,
// or as JSON lines.
import { describeSeconds, formatNumber, printable } from '@sluice/terminal'
import { type Tally, threadsIn } from '../account/ledger.ts'
import type { Done } from '../input/read-counted.ts'

/** The state from which the display is drawn. It is read at each tick. */
export interface ProgressState {
  bytes: Done
  /** The number of combined pieces, or 0 of 0 if the format needs no sort. */
  sorted: Done
  tally: Tally
}

export type ProgressStyle = 'bar' | 'lines' | 'json' | 'none'

export type ProgressDisplay = ReturnType<typeof showProgress>

interface ProgressOptions {
  style: ProgressStyle
  state: () => ProgressState
  /** Where people read. Only a terminal has columns. */
  stderr: { write(text: string): void; readonly columns?: number }
  /** Writes for programs. */
  print: (line: string) => void
}

const TICK_MS = { bar: 200, lines: 5_000, json: 2_000, none: 0 }
const DEFAULT_COLUMNS = 80
const CLEAR_LINE = '\r\x1b[K'

/** Shows progress until it is disposed of. */
export function showProgress({ style, state, stderr, print }: ProgressOptions) {
  const began = performance.now()
  let begin = pointOf(state(), 0)
  const draw = () => {
    const point = pointOf(state(), (performance.now() - began) / 1_000)
    if (point.phase !== begin.phase) begin = point
    const view = viewOf(state(), point, begin)
    if (style === 'bar')
      stderr.write(`${CLEAR_LINE}${barLine(view, (stderr.columns ?? DEFAULT_COLUMNS) - 1)}`)
    else if (style === 'lines') stderr.write(`${plainLine(view)}\n`)
    else print(JSON.stringify({ kind: 'progress', ...view }))
  }
  const timer = style === 'none' ? undefined : setInterval(draw, TICK_MS[style])
  return {
    say(line: string) {
      stderr.write(`${style === 'bar' ? CLEAR_LINE : ''}${printable(line)}\n`)
    },
    [Symbol.dispose]() {
      clearInterval(timer)
      if (style === 'bar') stderr.write(CLEAR_LINE)
    },
  }
}

type Point = ReturnType<typeof pointOf>

/**
 * Returns the progress. `share`: how much of the phase is done, from 0 to 1. `settled`: the threads
 * that are stored, rejected or checked.
 */
function pointOf({ bytes, sorted, tally }: ProgressState, seconds: number) {
  const phase = sorted.total === 0 ? 'reading' : sorted.done === 0 ? 'sorting' : 'sending'
  const share =
    phase === 'sending'
      ? sorted.done / sorted.total
      : bytes.total === 0
        ? 0
        : bytes.done / bytes.total
  return { phase, share: Math.min(1, share), seconds, settled: threadsIn(tally) }
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

const [LEAST_CELLS, MOST_CELLS] = [5, 20]

/**
 * Draws a line with a bar that fills the rest of the line. If the terminal is narrow or the total
 * is unknown, there is no bar, and the line is cut.
 */
function barLine(view: View, width: number): string {
  const line = plainLine(view)
  const cells = Math.min(MOST_CELLS, width - line.length - '[] '.length)
  if (view.totalBytes === 0 || cells < LEAST_CELLS) return line.slice(0, width)
  const full = Math.round(view.share * cells)
  return `[${'#'.repeat(full)}${'-'.repeat(cells - full)}] ${line}`
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

function mebibytes(bytes: number): string {
  return `${(bytes / 1024 ** 2).toFixed(1)} MiB`
}
