// The commands for the whole queue. `sluice status` shows the queue, the processes and recent
// events. `sluice pause` and `sluice resume` stop and restart the fetching of a lane's jobs.
import {
  ALIVE_MS,
  COUNT_NAMES,
  COUNTS,
  codeOf,
  countOf,
  type HistoryPoint,
  type LaneOperationKind,
  type Operation,
  perSecondOf,
  type Status,
  summarize,
  timesOf,
} from '@sluice/contract'
import { livingApi, loadOf, pauseWords } from '@sluice/operations/finding'
import type { ApiOptions } from '@sluice/terminal'
import {
  apiOptions,
  describeSeconds,
  formatNumber,
  jsonText,
  parseDuration,
  shortened,
  tableLines,
} from '@sluice/terminal'
import { Argument, Command } from 'commander'
import type { Line, PrintLines } from '../screen.ts'
import { type AdminClient, type AdminDeps, SilentApiError } from './admin-client.ts'

interface StatusDeps {
  env: { REDIS_URL?: string | undefined }
  openClient: (options: ApiOptions) => Promise<Pick<AdminClient, 'status'>>
  /** Reads the status from Redis and MongoDB. */
  readDirectly: () => Promise<Status>
  printLines: PrintLines
  show: (line: string) => void
}

export function statusCommand(deps: StatusDeps): Command {
  const description = 'Shows the queue, the processes and what happened lately'
  return apiOptions(new Command('status').description(description), 'operator')
    .option('--json', 'prints JSON')
    .action(async (options: ApiOptions & { json?: true }) => {
      const status = await readStatus(deps, options)
      deps.printLines(options.json ? [jsonText(status)] : statusLines(status))
    })
}

/** Asks the API or, while it does not answer or can't reach Redis, Redis and MongoDB. */
async function readStatus(deps: StatusDeps, options: ApiOptions): Promise<Status> {
  const client = await deps.openClient(options)
  try {
    return await client.status()
  } catch (error) {
    // With --url, the API may be another one than this folder's. Then only the environment can name
    // its Redis.
    const knowsRedis = options.url === undefined || Boolean(deps.env.REDIS_URL)
    if (!(error instanceof SilentApiError) || !knowsRedis) throw error
    deps.show(`${error.message} This is read from Redis.`)
    return deps.readDirectly()
  }
}

function statusLines(status: Status): Line[] {
  const { at, processes, redis, lastMinutes, lastHour } = status
  const { slowJobs, ...summary } = summarize(status)
  const queued = status.queued.filter(({ jobs }) => jobs > 0)
  const points = [pointCells('5m', lastMinutes), pointCells('1h', lastHour)]
  const tenants = summary.tenants.map(({ tenant, threads, refused }) => {
    return [shortened(tenant, SHOWN_NAME), formatNumber(threads), formatNumber(refused)]
  })
  return [
    ...verdictLines(status),
    at,
    ...(queued.length === 0 ? ['No job is in the queue.'] : []),
    ...tableOf(
      ['LANE', 'STATE', 'JOBS', 'THREADS', 'OLDEST'],
      queued.map(({ lane, state, jobs, threads, oldestMs }) => {
        return [lane, state, formatNumber(jobs), formatNumber(threads), describeMs(oldestMs)]
      }),
    ),
    `Redis uses ${megabytes(redis.usedBytes)}${redis.maxBytes > 0 ? ` of ${megabytes(redis.maxBytes)}` : ''}.`,
    ...boundLines(status),
    ...tableOf(
      ['LAST', 'ACCEPTED TO STORED', 'P50', 'P95', 'P99'],
      [...timeRows('5m', lastMinutes), ...timeRows('1h', lastHour)],
    ),
    ...tableOf(
      ['LAST', ...COUNT_NAMES.map((name) => COUNTS[name].title.toUpperCase())],
      points.filter(([, ...numbers]) => numbers.some((text) => !text.startsWith('0'))),
    ),
    ...processLines(processes),
    ...slowJobs.map(({ id, name, activeMs, worker }) => {
      return `${worker} has had ${id} for ${describeMs(activeMs)}: ${shortened(name, SHOWN_NAME)}`
    }),
    ...tableOf(['TENANT', 'THREADS', 'REFUSED 1h'], tenants),
  ]
}

/** Returns a table below an empty line, or nothing if the table has no rows. */
function tableOf(heads: readonly string[], rows: readonly (readonly string[])[]): string[] {
  return rows.length === 0 ? [] : ['', ...tableLines([heads, ...rows])]
}

/** Lists what is wrong, the worst first. */
function verdictLines({ verdict = [] }: Status): Line[] {
  const isWell = verdict.every(({ level }) => level === 'note')
  const found = verdict.map(
    ({ text, level }): Line => [`${text}.`, level === 'note' ? 'yellow' : 'red'],
  )
  return [...(isWell ? [['All is well.', 'green'] as const] : []), ...found]
}

/** Says how full the queue is. */
function boundLines({ processes, queued, load }: Status): string[] {
  const { queueBounds: most, tenantShare = 1 } = livingApi(processes) ?? {}
  if (most === undefined || load === undefined) return []
  const threads = `${formatNumber(load.threads)} of ${formatNumber(most.threads)} threads`
  const interactive = `${formatNumber(loadOf(queued, 'interactive'))} of ${formatNumber(most.interactive ?? most.threads)} interactive`
  const bytes = `${megabytes(load.bytes)} of ${megabytes(most.bytes)}`
  return [
    `The queue has ${threads}, ${interactive}, ${bytes}; a tenant may use ${tenantShare * 100}% of each.`,
  ]
}

/** Lists the processes, and marks those without a sign of life. */
function processLines(processes: Status['processes']): Line[] {
  const heads = ['PROCESS', 'HOST', 'VERSION', 'STARTED', 'SEEN', 'CPU', 'MEMORY']
  const lines = tableOf(heads, processes.map(processCells))
  const isGone = (at: number) => (processes[at - 2]?.seenMsAgo ?? 0) >= ALIVE_MS
  return lines.map((line, at) => (isGone(at) ? [`${line}  gone`, 'red'] : line))
}

const SHOWN_NAME = 60

function timeRows(name: string, point: HistoryPoint): string[][] {
  return timesOf(point).map(({ of, p50, p95, p99 }) => [
    name,
    of,
    ...[p50, p95, p99].map(milliseconds),
  ])
}

/** The counts that have a rate. The other counts should be zero. */
const RATED: ReadonlySet<string> = new Set(['accepted', 'stored'])

function pointCells(span: string, point: HistoryPoint): string[] {
  const cells = COUNT_NAMES.map((name) => {
    const number = countOf(point, name)
    const rate = RATED.has(name) ? ` (${perSecondOf(point, number).toFixed(1)}/s)` : ''
    return formatNumber(number) + rate
  })
  return [span, ...cells]
}

function processCells({ kind, host, pid, ...process }: Status['processes'][number]): string[] {
  const { startedAt, seenMsAgo, cpu, memoryBytes } = process
  const now = [`${describeMs(seenMsAgo)} ago`, `${Math.round(cpu * 100)}%`, megabytes(memoryBytes)]
  return [kind, `${host}:${pid}`, codeOf(process), startedAt, ...now]
}

const describeMs = (ms: number) => describeSeconds(ms / 1000)
const milliseconds = (seconds?: number) =>
  seconds === undefined ? '-' : `${formatNumber(Math.round(seconds * 1000))} ms`
const megabytes = (bytes: number) => `${formatNumber(Math.round(bytes / 1e6))} MB`

const TEXTS = {
  pause: {
    description: 'Pauses a lane: its jobs wait, and more are accepted',
    done: (lane: string, { pause, createdAt }: Pick<Operation, 'pause' | 'createdAt'>) => {
      const isFirst = pause === undefined || pause.since === createdAt
      const words = isFirst
        ? 'is paused'
        : `was paused already: it has been${pauseWords(pause, createdAt)}`
      const end = pause?.until === undefined ? '' : ` The pause ends by itself at ${pause.until}.`
      return `The ${lane} lane ${words}.${end} \`sluice resume ${lane}\` ends ${isFirst ? 'that' : 'both'}.`
    },
  },
  resume: {
    description: 'Resumes a paused lane',
    done: (lane: string) => `Workers fetch the jobs of the ${lane} lane.`,
  },
}

/** `sluice pause` or `sluice resume`. */
export function laneCommand(kind: LaneOperationKind, deps: AdminDeps): Command {
  const lane = new Argument(
    '<lane>',
    'bulk has imports, interactive the jobs with a waiting caller',
  )
  const command = apiOptions(new Command(kind).description(TEXTS[kind].description), 'operator')
    .addArgument(lane.choices(['bulk', 'interactive']))
    .option('--why <text>', 'what others shall know about it')
    .action(
      async (
        name: string,
        { why, for: seconds, ...options }: ApiOptions & { why?: string; for?: number },
      ) => {
        const query = { ...(why && { why }), ...(seconds && { seconds }) }
        deps.print(
          TEXTS[kind].done(
            name,
            await (await deps.openClient(options)).operateLane(kind, name, query),
          ),
        )
      },
    )
  return kind === 'resume'
    ? command
    : command.option('--for <time>', 'after which the pause ends by itself: 30m, 2h', parseDuration)
}
