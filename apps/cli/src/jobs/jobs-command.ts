// The commands `sluice jobs list|groups|show|retry|discard|operations`, and how they show failed
// jobs.
import { setTimeout as delay } from 'node:timers/promises'
import {
  type FailedJob,
  type FailedJobFilter,
  FailedJobFilterSchema,
  type FailedJobGroups,
  type FailedJobPage,
  JOBS_PER_PAGE,
  type Operation,
  type OperationKind,
  type OperationRequest,
  unlistedAttempts,
} from '@sluice/contract'
import {
  type ApiOptions,
  apiOptions,
  formatMoment,
  formatNumber,
  parseCount,
  parsePast,
  pickFields,
  printAnswer,
  shortened,
  tableLines,
  UserError,
} from '@sluice/terminal'
import { Command } from 'commander'
import { type AdminClient, type AdminDeps, NotFailedError } from './admin-client.ts'
import { briefReason, hitLines } from './hits-commands.ts'

interface JobsDeps extends AdminDeps {
  /** Asks the operator. Returns false if nobody can answer. */
  confirm: (question: string) => Promise<boolean>
}

interface JsonOptions extends ApiOptions {
  json?: true
}

type FilterOptions = JsonOptions & FailedJobFilter

export function jobsCommand(deps: JobsDeps): Command {
  const jobs = new Command('jobs').description('Lists, shows, retries and discards failed jobs')
  const add = (name: string, description: string) =>
    apiOptions(jobs.command(name).description(description), 'operator').option('--json', 'as JSON')

  withFilter(add('list', 'Lists failed jobs, newest first'))
    .option('--limit <number>', 'how many jobs', parseCount, 50)
    .action(async (options: FilterOptions & { limit: number }) => {
      const found = await listJobs(await deps.openClient(options), filterOf(options), options.limit)
      printAnswer(deps, options, found, jobTable)
    })
  withFilter(add('groups', 'Groups failed jobs by their reason')).action(
    async (options: FilterOptions) => {
      const found = await (await deps.openClient(options)).groups(filterOf(options))
      printAnswer(deps, options, found, groupTable)
    },
  )
  add('show', 'Shows a failed job: its reason, its attempts and its failed threads')
    .argument('<id>', 'the id of the job')
    .option('--payload', 'also the payload and all stacks')
    .action((id: string, options: ShowOptions) => show(deps, id, options))
  for (const [kind, description] of MOVES)
    withFilter(add(kind, description))
      .argument('[ids...]', 'the ids of jobs; without them a filter or --all chooses')
      .option('--all', 'all failed jobs')
      .option('--yes', 'discards many jobs without asking')
      .option('--no-wait', 'returns at once; the work goes on in the background')
      .action((ids: string[], options: MoveOptions) => move(deps, kind, ids, options))
  add('operations', 'Lists what was retried, discarded, paused and resumed, and by whom').action(
    async (options: JsonOptions) => {
      const { operations } = await (await deps.openClient(options)).operations()
      printAnswer(deps, options, operations, operationTable)
    },
  )
  return jobs
}

type ShowOptions = JsonOptions & { payload?: true }

async function show(deps: JobsDeps, id: string, options: ShowOptions): Promise<void> {
  const client = await deps.openClient(options)
  try {
    const job = await client.show(id)
    printAnswer(deps, options, job, (shown) => describeJob(shown, options.payload === true))
  } catch (error) {
    if (!(error instanceof NotFailedError)) throw error
    const hit = (await client.find({ q: id })).hits.find(
      (one) => one.kind === 'job' && one.id === id,
    )
    if (hit === undefined)
      throw new UserError('No job has this id, or it was completed or discarded too long ago.')
    printAnswer(deps, options, hit, (shown) => ['This job has not failed.', ...hitLines(shown)])
  }
}

const MOVES: readonly [OperationKind, description: string][] = [
  ['retry', 'Runs failed jobs again, with a full set of attempts'],
  ['discard', 'Removes failed jobs for good: their requests are lost'],
]

async function listJobs(client: AdminClient, filter: FailedJobFilter, limit: number) {
  const jobs = []
  let after: string | undefined
  do {
    const page = {
      limit: Math.min(limit - jobs.length, JOBS_PER_PAGE),
      ...(after !== undefined && { after }),
    }
    const { jobs: found, next } = await client.list(filter, page)
    jobs.push(...found)
    after = next
  } while (after !== undefined && jobs.length < limit)
  return jobs
}

type MoveOptions = FilterOptions & {
  all?: true
  yes?: true
  wait: boolean
}

async function move(
  deps: JobsDeps,
  kind: OperationKind,
  ids: string[],
  options: MoveOptions,
): Promise<void> {
  const request = requestOf(ids, options)
  const client = await deps.openClient(options)
  if (kind === 'discard' && !options.yes && !(await isConfirmed(deps, client, request)))
    throw new UserError('Nothing was discarded. Add --yes to discard without being asked.')
  const opened = await client.open(kind, request)
  const operation = options.wait ? await untilCompleted(client, opened) : opened
  printAnswer(deps, options, operation, describeOperation)
}

function requestOf(ids: string[], options: MoveOptions): OperationRequest {
  const filter = filterOf(options)
  const chosen = [ids.length > 0, Object.keys(filter).length > 0, options.all === true]
  if (chosen.filter(Boolean).length !== 1)
    throw new UserError('Give ids of jobs, or a filter, or --all.')
  return ids.length > 0 ? { ids } : { filter }
}

/** Asks for a confirmation before several jobs are discarded. A single job needs none. */
async function isConfirmed(
  { confirm }: JobsDeps,
  client: AdminClient,
  request: OperationRequest,
): Promise<boolean> {
  if ('ids' in request) {
    const { length } = request.ids
    return length <= 1 || confirm(`Discard ${length} jobs? Their failed threads are lost for good.`)
  }
  const jobs = await listJobs(client, request.filter, JOBS_PER_PAGE)
  if (jobs.length <= 1) return true
  const more = jobs.length === JOBS_PER_PAGE ? ' or more' : ''
  const threads = jobs.reduce(
    (sum, { failedThreadCount, threads }) => sum + (failedThreadCount ?? threads),
    0,
  )
  return confirm(
    `Discard ${jobs.length}${more} jobs? ${threads}${more} threads that failed are lost for good.`,
  )
}

const POLL_MS = 500

async function untilCompleted(client: AdminClient, opened: Operation): Promise<Operation> {
  let operation = opened
  while (operation.state !== 'completed') {
    await delay(POLL_MS)
    operation = await client.operation(opened.id)
  }
  return operation
}

function withFilter(command: Command): Command {
  return command
    .option('--tenant <name>', 'of this tenant')
    .option('--service <service>', 'with a thread of this service')
    .option('--external-id <id>', 'with a thread of this externalId')
    .option('--reason <text>', 'whose reason contains this text')
    .option('--group <id>', 'of this group: see `groups`')
    .option('--since <when>', 'that failed since a date, or not longer ago (2h)', parsePastIso)
    .option('--until <when>', 'that failed until a date, or longer ago (2h)', parsePastIso)
}

function filterOf(options: FilterOptions): FailedJobFilter {
  return pickFields(options, FailedJobFilterSchema)
}

const parsePastIso = (text: string) => parsePast(text).toISOString()

const COLUMNS = ['ID', 'FAILED', 'TENANT', 'JOB', 'ATTEMPTS', 'REASON']

// Names are cut, because a name may have two externalIds of 512 characters each.
const SHOWN_NAME = 60

function jobTable(jobs: FailedJobPage['jobs']): string[] {
  const rows = jobs.map(({ id, failedAt, tenant, name, attempts, reason }) => [
    id,
    formatMoment(new Date(failedAt)),
    tenant,
    shortened(name, SHOWN_NAME),
    String(attempts),
    briefReason(reason),
  ])
  return tableLines([COLUMNS, ...rows])
}

function groupTable({ groups, isComplete }: FailedJobGroups): string[] {
  const rows = groups.map(({ id, jobs, threads, hours, oldestAt, newestAt, reasonGroup }) => {
    const numbers = [formatNumber(jobs), formatNumber(threads), formatNumber(hours.at(-1) ?? 0)]
    return [
      id,
      ...numbers,
      formatMoment(new Date(oldestAt)),
      formatMoment(new Date(newestAt)),
      briefReason(reasonGroup),
    ]
  })
  const lines = tableLines([
    ['GROUP', 'JOBS', 'THREADS', 'LAST HOUR', 'FAILED FROM', 'TO', 'REASON GROUP'],
    ...rows,
  ])
  return isComplete ? lines : [...lines, 'More failed jobs were not examined: add --since.']
}

function operationTable(operations: Operation[]): string[] {
  const rows = operations.map(
    ({ createdAt, by, kind, filter, lane, total, state, done, stored, failedAgain }) => [
      formatMoment(new Date(createdAt)),
      by,
      kind,
      lane ??
        shortened(filter === undefined ? `${total} named` : JSON.stringify(filter), SHOWN_NAME),
      state,
      formatNumber(done),
      ...[stored, failedAgain].map((jobs = 0) => (kind === 'retry' ? formatNumber(jobs) : '-')),
    ],
  )
  return tableLines([
    ['OPENED', 'BY', 'KIND', 'OF', 'STATE', 'DONE', 'STORED', 'FAILED AGAIN'],
    ...rows,
  ])
}

function describeJob(job: FailedJob, isWhole: boolean): string[] {
  const { payload, stack, reason, tries, failedThreads, ...facts } = job
  const names = Object.entries(facts).map(([name, value]) => `${name.padEnd(11)}  ${String(value)}`)
  const json = JSON.stringify(payload, null, 2).split('\n')
  const attemptsMade = tries.map(({ at, worker, reason, retriedBy }) => {
    return [at, worker, retriedBy === undefined ? briefReason(reason) : `retried by ${retriedBy}`]
  })
  const unlisted = unlistedAttempts(job)
  const threads = failedThreads.map(({ place, service, externalId, reason }) => [
    `threads[${place}]`,
    `${service}/${externalId}`,
    briefReason(reason),
  ])
  const more = threads.length > 0 ? job.failedThreadCount - threads.length : 0
  const stacks = stack.map((trace, at) =>
    section(
      `attempt ${at + 1}`,
      trace.split('\n').map((line) => [line]),
    ),
  )
  return [
    ...names,
    `reason      ${reason}`,
    ...section('attempts', attemptsMade),
    ...(unlisted > 0 ? [`  and ${unlisted} more`] : []),
    ...section('failed threads', threads),
    ...(more > 0 ? [`  and ${more} more`] : []),
    ...(isWhole ? stacks : stacks.slice(-1)).flat(),
    ...(isWhole ? ['payload:', ...json] : []),
  ]
}

function section(title: string, rows: string[][]): string[] {
  return rows.length === 0 ? [] : [`${title}:`, ...tableLines(rows).map((line) => `  ${line}`)]
}

/** Describes the outcome of an operation in one line, or its id while it is not completed. */
function describeOperation({ id, kind, done, state }: Operation): string[] {
  if (state !== 'completed') return [`Operation ${id} works in the background.`]
  return [`${kind === 'retry' ? 'Retried' : 'Discarded'} ${done === 1 ? '1 job' : `${done} jobs`}.`]
}
