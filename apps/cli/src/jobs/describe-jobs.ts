// Shows failed jobs to people.
import type { FailedJob, FailedJobPage, Operation } from '@sluice/contract'
import { moment, printable, tableLines } from '../table.ts'

const COLUMNS = ['ID', 'FAILED', 'TENANT', 'JOB', 'TRIES', 'REASON']

// A reason may quote a document; a name holds two ids of up to 512 characters.
const SHOWN_NAME = 60
const SHOWN_REASON = 80

/** The lines of a table of failed jobs, one per job under a heading. */
export function jobTable(jobs: FailedJobPage['jobs']): string[] {
  const rows = jobs.map(({ id, failedAt, tenant, name, attempts, reason }) => [
    id,
    moment(new Date(failedAt)),
    printable(tenant),
    cut(name, SHOWN_NAME),
    String(attempts),
    cut(reason, SHOWN_REASON),
  ])
  return tableLines([COLUMNS, ...rows])
}

/** The lines that describe one failed job, with its payload last. */
export function describeJob({ payload, stack, reason, ...facts }: FailedJob): string[] {
  const names = Object.entries(facts).map(([name, value]) => `${name.padEnd(10)}  ${printable(String(value))}`)
  const traces = stack.flatMap((trace, at) => [
    `try ${at + 1}:`,
    ...trace.split('\n').map((line) => `  ${printable(line)}`),
  ])
  const json = JSON.stringify(payload, null, 2).split('\n').map(printable)
  return [...names, `reason      ${printable(reason)}`, ...traces, 'payload:', ...json]
}

/** The outcome of an operation in one line. */
export function describeOperation({ kind, done, total, examined, state }: Operation): string {
  const did = kind === 'retry' ? 'Retried' : 'Discarded'
  const progress = state === 'completed' ? '' : ` so far; ${examined} of ${total} examined`
  return `${did} ${done === 1 ? '1 job' : `${done} jobs`}${progress}.`
}

function cut(text: string, length: number): string {
  const shown = printable(text)
  return shown.length > length ? `${shown.slice(0, length - 1).toWellFormed()}…` : shown
}
