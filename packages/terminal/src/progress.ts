// Draws how far a command has got: by a bar on a terminal, otherwise by a line every few seconds,
// or as JSON lines.
import { printable } from './terminal.ts'

export type ProgressStyle = 'bar' | 'lines' | 'json' | 'none'

export interface ProgressView {
  line: string
  /** From 0 to 1. Without it, there is no bar. */
  share?: number | undefined
  json: object
}

interface ProgressOptions {
  style: ProgressStyle
  /** Is called at each tick. */
  view: () => ProgressView
  /** The output that people read. It has `columns` only if it is a terminal. */
  stderr: { write(text: string): void; readonly columns?: number }
  /** Writes for programs. */
  print: (line: string) => void
}

const TICK_MS = { bar: 200, lines: 5_000, json: 2_000, none: 0 }
const DEFAULT_COLUMNS = 80
const CLEAR_LINE = '\r\x1b[K'

/** Draws progress until it is disposed of. */
export function drawProgress({ style, view, stderr, print }: ProgressOptions) {
  const draw = () => {
    const { line, share, json } = view()
    if (style === 'bar')
      stderr.write(`${CLEAR_LINE}${barLine(line, share, (stderr.columns ?? DEFAULT_COLUMNS) - 1)}`)
    else if (style === 'lines') stderr.write(`${line}\n`)
    else print(JSON.stringify({ kind: 'progress', ...json }))
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

const [LEAST_CELLS, MOST_CELLS] = [5, 20]

/**
 * Draws a line with a bar that fills the rest of the line. If the terminal is narrow or the share
 * is unknown, there is no bar, and the line is cut.
 */
function barLine(line: string, share: number | undefined, width: number): string {
  const cells = Math.min(MOST_CELLS, width - line.length - '[] '.length)
  if (share === undefined || cells < LEAST_CELLS) return line.slice(0, width)
  const full = Math.round(share * cells)
  return `[${'#'.repeat(full)}${'-'.repeat(cells - full)}] ${line}`
}

/** The style that the options `--json` and `--quiet` choose. */
export function progressStyle(
  { json, quiet }: { json?: true | undefined; quiet?: true | undefined },
  isTerminal: boolean,
): ProgressStyle {
  if (quiet) return 'none'
  if (json) return 'json'
  return isTerminal ? 'bar' : 'lines'
}

export function mebibytes(bytes: number): string {
  return `${(bytes / 1024 ** 2).toFixed(1)} MiB`
}
