// Shows how far an import is: a bar on a terminal, else a line every few seconds, or JSON lines.
import { type Tally, threadsIn } from '../account/ledger.ts'
import type { PiecesSorted } from '../gather/gather-threads.ts'
import type { BytesRead } from '../input/read-counted.ts'
import { count, duration } from './summary.ts'

/** What the display is drawn from. It is read at each tick. */
export interface ProgressState {
  bytes: BytesRead
  sorted: PiecesSorted
  tally: Tally
  /** Batches that may be in flight. */
  concurrency: number
}

export type ProgressStyle = 'bar' | 'lines' | 'json' | 'none'

export interface ProgressDisplay {
  /** Prints a line for people without disturbing the bar. */
  say(line: string): void
  stop(): void
}

interface ProgressOptions {
  style: ProgressStyle
  state: () => ProgressState
  /** Writes for people. */
  write: (text: string) => void
  /** Writes for programs. */
  print: (line: string) => void
  width: () => number
  now?: () => number
}

const TICK_MS = { bar: 200, lines: 5_000, json: 2_000, none: 0 }
const CLEAR_LINE = '\r\x1b[K'

export function showProgress({
  style,
  state,
  write,
  print,
  width,
  now = () => performance.now(),
}: ProgressOptions): ProgressDisplay {
  const began = now()
  const rate = createRate(now)
  const timeLeft = createTimeLeft(now)
  const draw = () => {
    const view = viewOf(state(), rate, timeLeft, (now() - began) / 1_000)
    if (style === 'bar') write(`${CLEAR_LINE}${barLine(view).slice(0, width() - 1)}`)
    else if (style === 'lines') write(`${plainLine(view)}\n`)
    else print(JSON.stringify({ kind: 'progress', ...view }))
  }
  const timer = style === 'none' ? undefined : setInterval(draw, TICK_MS[style])
  return {
    say(line) {
      write(`${style === 'bar' ? CLEAR_LINE : ''}${line}\n`)
    },
    stop() {
      clearInterval(timer)
      if (style === 'bar') write(CLEAR_LINE)
    },
  }
}

/** Threads that lie apart are read and sorted first, and sent after that. */
type Phase = 'reading' | 'sorting' | 'sending'

interface View {
  phase: Phase
  /** Of the phase, from 0 to 1. */
  share: number
  seconds: number
  bytes: number
  totalBytes: number
  threads: Tally['threads']
  threadsPerSecond: number
  concurrency: number
  /** Of the phase. */
  secondsLeft?: number
}

function viewOf(
  { bytes, sorted, tally, concurrency }: ProgressState,
  rate: (value: number) => number,
  timeLeft: (phase: Phase, share: number) => number | undefined,
  seconds: number,
): View {
  const { threads, checked } = tally
  const settled = threadsIn(tally) + checked.threads
  const phase = sorted.total === 0 ? 'reading' : sorted.done === 0 ? 'sorting' : 'sending'
  const share = phase === 'sending' ? sorted.done / sorted.total : bytes.total === 0 ? 0 : bytes.done / bytes.total
  const secondsLeft = timeLeft(phase, share)
  return {
    phase,
    share: Math.min(1, share),
    seconds,
    bytes: bytes.done,
    totalBytes: bytes.total,
    threads,
    threadsPerSecond: rate(settled),
    concurrency,
    ...(secondsLeft !== undefined && { secondsLeft }),
  }
}

/** The time that is left of a phase, if it goes on as it did since it began. */
function createTimeLeft(now: () => number): (phase: Phase, share: number) => number | undefined {
  let begin: { phase: Phase; at: number; share: number } | undefined
  return (phase, share) => {
    if (begin?.phase !== phase) begin = { phase, at: now(), share }
    const done = share - begin.share
    return done <= 0 || share >= 1 ? undefined : ((now() - begin.at) / 1_000) * ((1 - share) / done)
  }
}

/** How much a value grows a second, over the last ticks. */
function createRate(now: () => number): (value: number) => number {
  let last = { at: now(), value: 0 }
  let rate: number | undefined
  return (value) => {
    const seconds = (now() - last.at) / 1_000
    if (seconds <= 0) return rate ?? 0
    const current = Math.max(0, value - last.value) / seconds
    rate = rate === undefined ? current : rate * 0.8 + current * 0.2
    last = { at: now(), value }
    return rate
  }
}

const BAR_CELLS = 20

function barLine(view: View): string {
  if (view.totalBytes === 0) return plainLine(view)
  const cells = Math.round(view.share * BAR_CELLS)
  return `[${'#'.repeat(cells)}${'-'.repeat(BAR_CELLS - cells)}] ${plainLine(view)}`
}

function plainLine({ phase, share, bytes, totalBytes, threads, threadsPerSecond, secondsLeft }: View): string {
  const read = totalBytes === 0 ? mebibytes(bytes) : `${Math.floor(share * 100)} %, ${mebibytes(totalBytes)}`
  const { created, updated, unchanged, rejected } = threads
  const counts = `${count(created)} created, ${count(updated)} updated, ${count(unchanged)} unchanged, ${count(rejected)} failed`
  const left = secondsLeft === undefined ? '' : `, ${duration(secondsLeft)} left`
  return `${phase} ${read}${left}; ${count(Math.round(threadsPerSecond))} threads/s: ${counts}`
}

function mebibytes(bytes: number): string {
  return `${(bytes / 1024 ** 2).toFixed(1)} MiB`
}
