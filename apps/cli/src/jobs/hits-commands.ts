// The commands that print hits. `sluice find` looks up a text in jobs and in stored threads.
// `sluice tail` prints jobs as they complete or fail, until it is interrupted. With `--no-follow`,
// it prints only the most recent ones.
import { setTimeout as delay } from 'node:timers/promises'
import type { FailedJobPage, FindQuery, Hit } from '@sluice/contract'
import { FindQuerySchema, failedHit } from '@sluice/contract'
import { reasonWords } from '@sluice/operations/reasons'
import {
  type ApiOptions,
  apiOptions,
  counted,
  formatMoment,
  jsonText,
  pickFields,
  shortened,
  UserError,
} from '@sluice/terminal'
import { Command } from 'commander'
import type { AdminDeps } from './admin-client.ts'

type FindOptions = ApiOptions & Omit<FindQuery, 'q'> & { json?: true }

/** `sluice find`. Exits 0 even if it finds nothing. */
export function findCommand(deps: AdminDeps): Command {
  const command = new Command('find')
    .description('Looks up jobs, and what is stored, of all tenants')
    .argument('<text>', 'the id of a job, import, source or quote, or the externalId of a thread')
  return apiOptions(command, 'operator')
    .option('--tenant <name>', 'of this tenant')
    .option('--service <service>', 'a thread of this service')
    .option('--reason <text>', 'failed jobs whose reason contains this text')
    .option('--json', 'the answer as JSON')
    .action((q: string, options: FindOptions) => find(deps, q, options))
}

async function find(deps: AdminDeps, q: string, options: FindOptions): Promise<void> {
  const found = await (await deps.openClient(options)).find({
    ...pickFields(options, FindQuerySchema),
    q,
  })
  if (options.json) return deps.print(jsonText(found))
  found.hits.flatMap(hitLines).forEach(deps.print)
  deps.print(
    `${counted(found.hits.length, 'hit')}.${found.more ? ' There are more: add filters.' : ''}`,
  )
  found.notes.forEach(deps.print)
}

// An externalId is never cut, because `sluice get` needs the whole.

/** Reasons are cut, because they may quote a document. */
const SHOWN_REASON = 160

/** Returns the beginning of a reason, in words. */
export function briefReason(reason: string): string {
  return shortened(reasonWords(reason), SHOWN_REASON)
}

export function hitLines({ kind, id, tenant, state, name, quote, reason, ...hit }: Hit): string[] {
  const found = quote === undefined ? '' : `, message ${JSON.stringify(quote)}`
  const at = hit.endedAt ?? hit.acceptedAt
  const facts = [
    (state ?? kind).padEnd(9),
    kind.padEnd(6),
    at === undefined ? '-'.padEnd(17) : formatMoment(new Date(at)),
    tenant,
    `${name ?? `${hit.threads} threads`}${found}`,
  ]
  const jobs = [
    hit.insertedBy && `inserted by ${hit.insertedBy}`,
    hit.changedBy && `changed by ${hit.changedBy}`,
  ]
  const ids = [
    `${kind} ${id}`,
    hit.sourceId && `source ${hit.sourceId}`,
    hit.importId && `import ${hit.importId}`,
    hit.keyId && `key ${hit.keyId}`,
  ]
  const more = [...ids, ...jobs].filter((text) => text !== undefined && text !== '').join(', ')
  return [
    facts.join('  '),
    `           ${more}`,
    ...(reason === undefined ? [] : [`           ${briefReason(reason)}`]),
  ]
}

interface TailOptions extends ApiOptions {
  failed?: true
  follow: boolean
  json?: true
}

type TailDeps = AdminDeps & { show: (line: string) => void }

export function tailCommand(deps: TailDeps): Command {
  return apiOptions(
    new Command('tail').description('Prints jobs as they complete or fail'),
    'operator',
  )
    .option('--failed', 'only jobs that fail')
    .option('--no-follow', 'prints the last jobs and ends')
    .option('--json', 'each job as JSON')
    .action((options: TailOptions) => tail(deps, options))
}

const EVERY_MS = 1_000
/** Each look prints at most this number of failed jobs. `sluice jobs list` lists more. */
const FAILED_SHOWN = 100

async function tail(deps: TailDeps, options: TailOptions): Promise<void> {
  const client = await deps.openClient(options)
  let after: string | undefined
  let seen = new Set<string>()
  const look = async () => {
    const recent = options.failed ? undefined : await client.recent(after)
    const { jobs: failed } = await client.list({}, { limit: FAILED_SHOWN })
    after = recent?.next
    const fresh = failed.filter((job) => !seen.has(failureOf(job)))
    seen = new Set(failed.map(failureOf))
    const ended = [...(recent?.jobs ?? []), ...fresh.map(failedHit)].sort(
      (one, other) => timeOf(one) - timeOf(other),
    )
    for (const job of ended) deps.print(options.json ? jsonText(job) : lineOf(job))
  }
  await look()
  // A failure that comes later is shown once, and the command goes on.
  for (let shown = ''; options.follow; ) {
    await delay(EVERY_MS)
    const failure = await look().catch((error) => error)
    if (failure && !(failure instanceof UserError)) throw failure
    if (failure && failure.message !== shown) deps.show(failure.message)
    shown = failure ? failure.message : ''
  }
}

type FailedJob = FailedJobPage['jobs'][number]

/**
 * Identifies a failure. If a job is retried and fails again, it is shown again, because the time is
 * another one.
 */
const failureOf = ({ id, failedAt }: FailedJob) => `${id} ${failedAt}`

function timeOf({ endedAt = '' }: Hit): number {
  return Date.parse(endedAt)
}

function lineOf({
  id,
  tenant,
  name = '',
  state = 'completed',
  endedAt = '',
  acceptedAt,
  ...job
}: Hit): string {
  const { created = 0, updated = 0, unchanged = 0, deleted = 0 } = job.outcomes ?? {}
  const counts = Object.entries({ created, updated, unchanged, deleted }).filter(
    ([, threads]) => threads > 0,
  )
  const outcome = counts
    .map(([word, threads]) => (threads === 1 ? word : `${threads} ${word}`))
    .join(', ')
  const took =
    acceptedAt === undefined || state === 'failed'
      ? ''
      : `${Date.parse(endedAt) - Date.parse(acceptedAt)} ms`
  const facts = [
    endedAt,
    state.padEnd(9),
    id,
    tenant,
    name,
    state === 'failed' ? '' : outcome,
    took,
  ]
  const reason = job.reason === undefined ? [] : [briefReason(job.reason)]
  return [...facts.filter((text) => text !== ''), ...reason].join('  ')
}
