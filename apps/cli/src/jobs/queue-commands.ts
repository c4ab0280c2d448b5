// The commands of the queue as a whole: `sluice status` shows the queue, the processes and what happened lately, once or
// again and again; `sluice pause` and `sluice resume` say whether workers fetch the jobs of a lane.
import { setTimeout as delay } from 'node:timers/promises'
import type { HistoryPoint, LaneOperationKind, Status } from '@sluice/contract'
import { Argument, Command } from 'commander'
import { type ApiOptions, apiOptions } from '../find-api.ts'
import { count, counted, describeSeconds, printable, shortened, tableLines } from '../terminal.ts'
import type { AdminClient, AdminDeps } from './admin-client.ts'

interface StatusDeps {
  openClient: (options: ApiOptions) => Promise<Pick<AdminClient, 'status'>>
  print: (line: string) => void
}

interface StatusOptions extends ApiOptions {
  watch?: true
  json?: true
}

/** As often as processes write heartbeats. */
const EVERY_MS = 5_000

/** `sluice status`. */
export function statusCommand(deps: StatusDeps): Command {
  const description = 'Shows the queue, the processes and what happened lately'
  return apiOptions(new Command('status').description(description), 'operator')
    .option('--watch', 'again every five seconds, until it is interrupted')
    .option('--json', 'prints JSON')
    .action(async (options: StatusOptions) => {
      const client = await deps.openClient(options)
      for (;;) {
        const status = await client.status()
        deps.print(options.json ? JSON.stringify(status) : statusLines(status).join('\n'))
        if (!options.watch) return
        await delay(EVERY_MS)
      }
    })
}

function statusLines(status: Status): string[] {
  const { at, queued, paused, tenants, processes, redis, storeAwayMs, lastMinutes, lastHour } = status
  const waiting = queued.reduce((sum, { state, jobs }) => sum + (state === 'waiting' ? jobs : 0), 0)
  const slow = processes.flatMap(({ host, pid, slowJobs = [] }) => slowJobs.map((job) => ({ ...job, host, pid })))
  const lines = [
    at,
    ...tableLines([
      ['LANE', 'STATE', 'JOBS', 'THREADS', 'OLDEST'],
      ...queued.map(({ lane, state, jobs, threads, oldestMs }) => {
        return [lane, state, count(jobs), count(threads), jobs > 0 ? describeSeconds(oldestMs / 1000) : '-']
      }),
    ]),
    ...Object.entries(paused).map(([lane, { by, since }]) => {
      return `The ${lane} lane is paused${by === undefined ? '' : ` by ${printable(by)} since ${since}`}.`
    }),
    storeAwayMs !== undefined &&
      `MongoDB has been away for ${describeSeconds(storeAwayMs / 1000)}; ${counted(waiting, 'job')} ${waiting === 1 ? 'waits' : 'wait'}.`,
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
      return `${printable(`${host}:${pid}`)} has had ${id} for ${describeSeconds(activeMs / 1000)}: ${shortened(name, SHOWN_NAME)}`
    }),
    ...(tenants.length === 0 ? [] : ['', ...tableLines([['TENANT', 'THREADS'], ...tenants.map(tenantCells)])]),
  ]
  return lines.filter((line) => line !== false)
}

const SHOWN_NAME = 60

function tenantCells({ tenant, threads }: Status['tenants'][number]): string[] {
  return [shortened(tenant, SHOWN_NAME), count(threads)]
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
  return [kind, printable(`${host}:${pid}`), version, startedAt, ...now]
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
