// The processes on the overview, and the page of a process: what it reports every second, the jobs
// that it has locked for long, and its recently completed jobs.
import {
  ALIVE_MS,
  COUNT_NAMES,
  COUNTS,
  codeOf,
  type SeenProcess,
  type Status,
  type summarize,
} from '@sluice/contract'
import { duration } from '@sluice/operations'
import { html } from 'hono/html'
import { jobTable } from './find.ts'
import {
  age,
  type Cell,
  copyable,
  facts,
  type Html,
  megabytes,
  type Page,
  type PageHandler,
  plural,
  shown,
  table,
  timeTag,
  type Visit,
} from './page.ts'

const PROCESS_HEADS = ['Process', 'Version', 'Started', 'Seen', '#CPU', '#Memory', 'Faults']

/** Lists the living processes, then the dead ones. */
export function processTables({ processes }: Pick<Status, 'processes'>): Html {
  const [living = [], gone = []] = [false, true].map((isGone) =>
    processes.filter(({ seenMsAgo }) => seenMsAgo >= ALIVE_MS === isGone).map(processCells),
  )
  const goneTable = html`<details><summary>gone (${gone.length})</summary>${table('Gone processes', PROCESS_HEADS, gone)}</details>`
  return html`${table('Processes', PROCESS_HEADS, living, 'No process runs.')}${gone.length > 0 && goneTable}`
}

function processCells(process: SeenProcess): Cell[] {
  const { id, kind, host, pid, startedAt, seenMsAgo } = process
  const { cpu, memoryBytes, storeAwayMs, slowJobs = [] } = process
  const isGone = seenMsAgo >= ALIVE_MS
  const name = html`<a href="/processes/${id}">${kind}</a> <span class="note">${host}:${pid}</span>`
  const faults = [
    storeAwayMs !== undefined && 'no MongoDB',
    slowJobs.length > 0 && plural(slowJobs.length, 'slow job'),
  ]
  const load = isGone
    ? [undefined, undefined]
    : [`${Math.round(cpu * 100)} %`, megabytes(memoryBytes)]
  return [
    name,
    codeOf(process),
    html`${age(startedAt)} ago`,
    seenWords(process),
    ...load,
    faults.filter(Boolean).join(', '),
  ]
}

/** Says when a process was last seen. */
function seenWords({ seenMsAgo }: SeenProcess): Html | string {
  const time = duration(seenMsAgo)
  return seenMsAgo >= ALIVE_MS ? html`<strong>gone for ${time}</strong>` : `${time} ago`
}

/** Lists the jobs that workers have had locked for long. */
export function slowJobTable(jobs: ReturnType<typeof summarize>['slowJobs']): Html {
  const rows = jobs.map(({ id, name, activeMs, worker }): Cell[] => {
    return [html`<a href="/jobs/${id}">${name}</a>`, duration(activeMs), worker]
  })
  return html`<h2>Active for more than 10 s</h2>${table('Slow jobs', ['Job', 'For', 'Worker'], rows)}`
}

/** Shows the process that the path names. */
export const processPage: PageHandler = async (visit) => {
  const { processes } = await visit.view.readLately()
  const process = processes.find(({ id }) => id === visit.params.id)
  if (process === undefined) return NO_SUCH_PROCESS
  const { kind, host, pid, slowJobs = [], counts = {}, lastMinute = {} } = process
  const worker = `${host}:${pid}`
  const names = COUNT_NAMES.filter((name) => COUNTS[name].by === kind)
  const spans = {
    'In the last minute': (name: string) => lastMinute[name] ?? 0,
    'Since its start': (name: string) => counts[name] ?? 0,
  }
  const counted = names.length > 0 && html`<h2>What it counted</h2>${countTable(names, spans)}`
  const body = html`<div id="process" data-refresh>${factsOf(process)}
${counted}
${slowJobs.length > 0 && slowJobTable(slowJobs.map((job) => ({ ...job, worker })))}</div>
${kind === 'worker' && (await completedBy(worker, visit))}`
  const trail = [
    html`<a href="/overview">Overview</a>`,
    html`<a href="/overview#processes">Processes</a>`,
  ]
  return { title: `${kind} ${worker}`, trail, body }
}

const NO_SUCH_PROCESS: Page = {
  title: 'No such process',
  body: html`<p>It has stopped cleanly, or has shown no sign of life for ten minutes: see <a href="/overview#processes">the running processes</a>.</p>`,
  status: 404,
}

function factsOf(process: SeenProcess): Html {
  const { id, startedAt, seenMsAgo, cpu, memoryBytes, storeAwayMs } = process
  const { activeJobs, queueBounds, clockAheadMs, servers } = process
  const isGone = seenMsAgo >= ALIVE_MS
  return facts({
    Process: copyable(id),
    Version: codeOf(process),
    Started: timeTag(startedAt),
    Seen: seenWords(process),
    Clock: clockAheadMs !== undefined && `${(clockAheadMs / 1_000).toFixed(1)} s ahead of Redis’s`,
    CPU: !isGone && `${Math.round(cpu * 100)} % of a core`,
    Memory: !isGone && megabytes(memoryBytes),
    MongoDB:
      storeAwayMs !== undefined && html`<strong>unavailable for ${duration(storeAwayMs)}</strong>`,
    Queue: servers && `${servers.queue} at ${servers.redis}`,
    Database: servers && `${servers.database} at ${servers.mongodb}`,
    'Jobs that it has': activeJobs,
    'Bound of the queue':
      queueBounds && `${shown(queueBounds.threads)} threads, ${megabytes(queueBounds.bytes)}`,
    'Share of a tenant': process.tenantShare && `${process.tenantShare * 100} %`,
    'Replicas of Redis': process.redisReplicas,
  })
}

type CountName = (typeof COUNT_NAMES)[number]

/** Shows counts. `spans` has a function that returns a count, for the heading of each column. */
export function countTable(
  names: readonly CountName[],
  spans: Readonly<Record<string, (name: CountName) => number>>,
): Html {
  const rows = names.map((name): Cell[] => {
    const { title, text } = COUNTS[name]
    const about = html`${title} <span class="note">${text}</span>`
    return [about, ...Object.values(spans).map((countOf) => countOf(name))]
  })
  return table('Counts', ['What', ...Object.keys(spans).map((head) => `#${head}`)], rows)
}

async function completedBy(worker: string, visit: Visit): Promise<Html> {
  const { jobs } = await visit.view.listJobs({ state: 'completed', worker })
  const all = `/jobs?${new URLSearchParams({ state: 'completed', worker })}`
  return html`<h2><a href="${all}">Jobs that it completed last</a></h2>
<div id="completed" data-refresh>${jobTable('Completed jobs', jobs)}</div>`
}
