// The command `sluice tail`: prints jobs as they complete or fail, until it is interrupted.
import { setTimeout as delay } from 'node:timers/promises'
import type { FailedJobPage, Hit } from '@sluice/contract'
import { Command } from 'commander'
import { type ApiOptions, apiOptions } from '../find-api.ts'
import { printable, shortened } from '../terminal.ts'
import type { AdminDeps } from './admin-client.ts'

interface TailOptions extends ApiOptions {
  failed?: true
  follow: boolean
  json?: true
}

/** `sluice tail`. */
export function tailCommand(deps: AdminDeps): Command {
  return apiOptions(new Command('tail').description('Prints jobs as they complete or fail'), 'operator')
    .option('--failed', 'only jobs that fail')
    .option('--no-follow', 'prints the last jobs and ends')
    .option('--json', 'each job as JSON')
    .action((options: TailOptions) => tail(deps, options))
}

const EVERY_MS = 1_000
/** Failed jobs of the first look, and most of each further one: more go to `sluice jobs list`. */
const FAILED_SHOWN = 100

async function tail(deps: AdminDeps, options: TailOptions): Promise<void> {
  const client = await deps.openClient(options)
  let after: string | undefined
  let seen = new Set<string>()
  for (;;) {
    const recent = options.failed ? undefined : await client.recent(after)
    after = recent?.next
    const { jobs: failed } = await client.list({}, { limit: FAILED_SHOWN })
    const fresh = failed.filter((job) => !seen.has(failureOf(job)))
    seen = new Set(failed.map(failureOf))
    const ended = [...(recent?.jobs ?? []), ...fresh.map(failedHit)].sort((one, other) => timeOf(one) - timeOf(other))
    for (const job of ended) deps.print(options.json ? JSON.stringify(job) : lineOf(job))
    if (!options.follow) return
    await delay(EVERY_MS)
  }
}

type FailedJob = FailedJobPage['jobs'][number]

/** A job that was retried and fails again is shown again, because it failed at another time. */
const failureOf = ({ id, failedAt }: FailedJob) => `${id} ${failedAt}`

function failedHit({ id, tenant, name, threads, failedAt, attempts, reason }: FailedJob): Hit {
  return { kind: 'job', id, tenant, state: 'failed', name, threads, endedAt: failedAt, attempts, reason }
}

function timeOf({ endedAt = '' }: Hit): number {
  return Date.parse(endedAt)
}

const SHOWN_REASON = 100

function lineOf({ id, tenant, name = '', state = 'completed', endedAt = '', acceptedAt, ...job }: Hit): string {
  const { created = 0, updated = 0, unchanged = 0 } = job.outcomes ?? {}
  const counts = Object.entries({ created, updated, unchanged }).filter(([, threads]) => threads > 0)
  const outcome = counts.map(([word, threads]) => (threads === 1 ? word : `${threads} ${word}`)).join(', ')
  const took = acceptedAt === undefined ? '' : `${Date.parse(endedAt) - Date.parse(acceptedAt)} ms`
  const facts = [endedAt, state.padEnd(9), id, tenant, name, state === 'failed' ? '' : outcome, took]
  const reason = job.reason === undefined ? [] : [shortened(job.reason, SHOWN_REASON)]
  return [...facts.filter((text) => text !== '').map(printable), ...reason].join('  ')
}
