// The commands of the queue as a whole: `sluice status` shows the queue, the processes and what happened lately, once
// or again and again; `sluice pause` and `sluice resume` say whether workers fetch the jobs of a lane.
import { ALIVE_MS, type HistoryPoint, type LaneOperationKind, type Status } from '@sluice/contract'
import {
  type ApiOptions,
  apiOptions,
  count,
  counted,
  describeSeconds,
  jsonText,
  shortened,
  tableLines,
} from '@sluice/terminal'
import { Argument, Command } from 'commander'
import { type AdminClient, type AdminDeps, watch } from './admin-client.ts'

interface StatusDeps {
  openClient: (options: ApiOptions) => Promise<Pick<AdminClient, 'status'>>
  print: (line: string) => void
  show: (line: string) => void
}

interface StatusOptions extends ApiOptions {
  watch?: true
  json?: true
}

const EVERY_MS = 5_000

/** `sluice status`. */
export function statusCommand(deps: StatusDeps): Command {
  const description = 'Shows the queue, the processes and what happened lately'
  return apiOptions(new Command('status').description(description), 'operator')
    .option('--watch', 'again every five seconds, until it is interrupted')
    .option('--json', 'prints JSON')
    .action(async (options: StatusOptions) => {
      const client = await deps.openClient(options)
      const look = async () => {
        const status = await client.status()
        for (const line of options.json ? [jsonText(status)] : statusLines(status)) deps.print(line)
      }
      await (options.watch ? watch(look, EVERY_MS, deps.show) : look())
    })
}

function statusLines(status: Status): string[] {
  const { at, queued, paused, processes, redis, storeAwayMs, lastMinutes, lastHour } = status
  const waiting = queued.reduce((sum, { state, jobs }) => sum + (state === 'waiting' ? jobs : 0), 0)
  const wait = `${counted(waiting, 'job')} ${waiting === 1 ? 'waits' : 'wait'}.`
  const slow = processes.flatMap(({ host, pid, slowJobs = [] }) => slowJobs.map((job) => ({ ...job, host, pid })))
  const rows = tenantRows(status)
  const lines = [
    at,
    ...tableLines([
      ['LANE', 'STATE', 'JOBS', 'THREADS', 'OLDEST'],
      ...queued.map(({ lane, state, jobs, threads, oldestMs }) => {
        return [lane, state, count(jobs), count(threads), jobs > 0 ? describeSeconds(oldestMs / 1000) : '-']
      }),
    ]),
    ...Object.entries(paused).map(([lane, { by, since }]) => {
      return `The ${lane} lane is paused${by === undefined ? '' : ` by ${by} since ${since}`}.`
    }),
    storeAwayMs !== undefined && `MongoDB has been away for ${describeSeconds(storeAwayMs / 1000)}; ${wait}`,
    !processes.some(({ kind, seenMsAgo }) => kind === 'worker' && seenMsAgo < ALIVE_MS) &&
      `No worker has shown a sign of life for ${describeSeconds(ALIVE_MS / 1000)}; ${wait}`,
    `Redis uses ${megabytes(redis.usedBytes)}${redis.maxBytes > 0 ? ` of ${megabytes(redis.maxBytes)}` : ''}.`,
    '',
    ...tableLines([
      ['LAST', 'ACCEPTED', 'STORED', 'FAILED', 'REFUSED', 'IN QUEUE p50, p99', 'IN STORE p50, p99'],
      pointCells('5m', lastMinutes),
      pointCells('1h', lastHour),
    ]),
    '',
    ...tableLines([['PROCESS', 'HOST', 'VERSION', 'STARTED', 'SEEN', 'CPU', 'MEMORY'], ...processes.map(processCells)]),
    ...slow.map(({ id, name, activeMs, host, pid }) => {
      return `${`${host}:${pid}`} has had ${id} for ${describeSeconds(activeMs / 1000)}: ${shortened(name, SHOWN_NAME)}`
    }),
    ...(rows.length === 0 ? [] : ['', ...tableLines([['TENANT', 'THREADS', 'REFUSED 1h'], ...rows])]),
  ]
  return lines.filter((line) => line !== false)
}

const SHOWN_NAME = 60

/** The tenants that fill the queue, and those that were refused. */
function tenantRows({ tenants, lastHour: { refusedByTenant } }: Status): string[][] {
  const threads = new Map(tenants.map((of) => [of.tenant, of.threads]))
  return Array.from(new Set([...threads.keys(), ...Object.keys(refusedByTenant)]), (tenant) => {
    return [shortened(tenant, SHOWN_NAME), count(threads.get(tenant) ?? 0), count(refusedByTenant[tenant] ?? 0)]
  })
}

function pointCells(name: string, { minutes, accepted, stored, failed, refused, ...times }: HistoryPoint): string[] {
  const perSecond = (threads: number) => `${count(threads)} (${(threads / minutes / 60).toFixed(1)}/s)`
  const { created, updated, unchanged } = stored
  const shown = [times.queueTime, times.storeTime].map((quantiles) =>
    quantiles === undefined ? '-' : `${milliseconds(quantiles.p50)}, ${milliseconds(quantiles.p99)}`,
  )
  return [name, perSecond(accepted), perSecond(created + updated + unchanged), count(failed), count(refused), ...shown]
}

function processCells({ kind, host, pid, version, ...process }: Status['processes'][number]): string[] {
  const { startedAt, seenMsAgo, cpu, memoryBytes } = process
  const now = [`${describeSeconds(seenMsAgo / 1000)} ago`, `${Math.round(cpu * 100)}%`, megabytes(memoryBytes)]
  return [kind, `${host}:${pid}`, version, startedAt, ...now]
}

const milliseconds = (seconds: number) => `${count(Math.round(seconds * 1000))} ms`
const megabytes = (bytes: number) => `${count(Math.round(bytes / 1e6))} MB`

const TEXTS = {
  pause: {
    description: 'Pauses a lane: its jobs wait, and more are accepted',
    done: (lane: string) => `The ${lane} lane is paused. \`sluice resume ${lane}\` ends that.`,
  },
  resume: {
    description: 'Resumes a paused lane',
    done: (lane: string) => `Workers fetch the jobs of the ${lane} lane.`,
  },
}

/** `sluice pause` or `sluice resume`. */
export function laneCommand(kind: LaneOperationKind, deps: AdminDeps): Command {
  const lane = new Argument('<lane>', 'bulk has imports, interactive the jobs with a waiting caller')
  return apiOptions(new Command(kind).description(TEXTS[kind].description), 'operator')
    .addArgument(lane.choices(['bulk', 'interactive']))
    .action(async (name: string, options: ApiOptions) => {
      await (await deps.openClient(options)).operateLane(kind, name)
      deps.print(TEXTS[kind].done(name))
    })
}
