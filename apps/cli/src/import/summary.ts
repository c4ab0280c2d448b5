// The end of an import: its exit code, and the summary for people and for programs.
import type { Tally } from './ledger.ts'

/** How an import ended. The exit codes are those of dsbulk. */
export const EXIT_CODES = {
  completed: 0,
  completed_with_rejected: 1,
  gave_up: 2,
  failed: 3,
  interrupted: 4,
  crashed: 5,
} as const

export type State = keyof typeof EXIT_CODES

export interface Summary {
  state: State
  /** Nothing was sent. */
  isDryRun: boolean
  tally: Tally
  seconds: number
  /** Bytes of the input that were read. */
  bytes: number
  /** Why it did not complete. */
  problem?: string
  /** The file of rejected records, if this import has one. */
  rejectedFile?: string
  /** The checkpoint from which the same command goes on. */
  checkpoint?: string
}

/** The summary as one JSON object. */
export function summaryObject({ tally, isDryRun, ...summary }: Summary): object {
  const { threads, quotes, checked, notes } = tally
  return {
    kind: 'summary',
    ...summary,
    exitCode: EXIT_CODES[summary.state],
    ...(isDryRun ? { dryRun: true, valid: checked, rejected: threads.rejected } : { threads, quotes }),
    ...notes,
  }
}

/** The summary for people. The word "done" stands in it only if everything is stored. */
export function summaryLines(summary: Summary): string[] {
  const { tally, seconds, problem, rejectedFile, checkpoint } = summary
  return [
    `${headline(summary)} ${countsOf(summary)} in ${duration(seconds)}.`,
    ...(problem === undefined ? [] : [problem]),
    ...(rejectedFile === undefined ? [] : [`Rejected records: ${rejectedFile} (fix them there, and import that file)`]),
    ...(['skipped', 'cut', 'replaced'] as const).flatMap((kind) => noteLines(kind, tally.notes[kind])),
    ...(checkpoint === undefined ? [] : [`Run the same command again to go on from here (${checkpoint}).`]),
  ]
}

function headline({ state, isDryRun, tally }: Summary): string {
  switch (state) {
    case 'completed':
      return isDryRun ? 'Dry run, nothing was sent:' : 'Done:'
    case 'completed_with_rejected':
      return isDryRun
        ? 'Dry run, nothing was sent; some records are invalid:'
        : 'Completed, but some records were rejected:'
    case 'gave_up':
      return `Gave up after ${count(tally.threads.rejected)} rejected records:`
    case 'interrupted':
      return 'Interrupted:'
    case 'failed':
      return 'Failed:'
    case 'crashed':
      return 'Crashed:'
  }
}

function countsOf({ isDryRun, tally: { threads, quotes, checked } }: Summary): string {
  if (isDryRun) {
    return `${count(checked.threads)} threads with ${count(checked.quotes)} quotes are valid, ${count(threads.rejected)} are not,`
  }
  const { created, updated, unchanged, rejected } = threads
  const ofThreads = `${count(created)} threads created, ${count(updated)} updated, ${count(unchanged)} unchanged, ${count(rejected)} rejected`
  const ofQuotes = `${count(quotes.created)} quotes created, ${count(quotes.updated)} updated, ${count(quotes.unchanged)} unchanged`
  return `${ofThreads}; ${ofQuotes},`
}

function noteLines(kind: string, reasons: Record<string, number>): string[] {
  const byNumber = Object.entries(reasons).sort(([, a], [, b]) => b - a)
  return byNumber.map(([reason, number]) => `  ${kind}: ${count(number)} ${reason}`)
}

export function count(number: number): string {
  return number.toLocaleString('en')
}

/** Seconds, for people: `4 s`, `2 min 5 s`, `1 h 2 min`. */
export function duration(seconds: number): string {
  const whole = Math.round(seconds)
  if (whole < 60) return `${whole} s`
  if (whole < 3_600) return `${Math.floor(whole / 60)} min ${whole % 60} s`
  return `${Math.floor(whole / 3_600)} h ${Math.floor((whole % 3_600) / 60)} min`
}
