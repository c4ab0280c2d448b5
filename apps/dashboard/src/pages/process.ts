// The page of a process: what it reports of itself every second, the jobs that it has, and those that it completed last.
import { ALIVE_MS, codeOf, type SeenProcess } from '@sluice/contract'
import { duration } from '@sluice/operations'
import { html } from 'hono/html'
import { jobTable } from './find.ts'
import { type Cell, copyable, facts, megabytes, moment, shown, table } from './layout.ts'
import { seenWords, slowJobTable } from './overview.ts'
import type { Html, Page, Show, Visit } from './page.ts'

/** Shows the process that the path names. */
export const processPage: Show = async (visit) => {
  const { processes } = await visit.view.readLately()
  const process = processes.find(({ id }) => id === visit.params.id)
  if (process === undefined) return GONE
  const { kind, host, pid, slowJobs = [] } = process
  const worker = `${host}:${pid}`
  const body = html`<div id="process" data-refresh>${factsOf(process)}
<h2>What it counted</h2>${countTable(process)}
${slowJobs.length > 0 && slowJobTable(slowJobs.map((job) => ({ ...job, worker })))}</div>
${kind === 'worker' && (await completedBy(worker, visit))}`
  const trail = [html`<a href="/overview">Overview</a>`, html`<a href="/overview#processes">Processes</a>`]
  return { title: `${kind} ${worker}`, trail, body }
}

const GONE: Page = {
  title: 'No such process',
  body: html`<p>It has stopped in order, or has shown no sign of life for ten minutes: see <a href="/overview#processes">those that live</a>.</p>`,
  status: 404,
}

function factsOf(process: SeenProcess): Html {
  const { id, startedAt, seenMsAgo, cpu, memoryBytes, storeAwayMs, activeJobs, queueBounds, clockAheadMs, servers } =
    process
  const isGone = seenMsAgo >= ALIVE_MS
  return facts({
    Process: copyable(id),
    Version: codeOf(process),
    Started: moment(startedAt),
    Seen: seenWords(process),
    Clock: clockAheadMs === undefined ? undefined : `${(clockAheadMs / 1_000).toFixed(1)} s ahead of Redis’s`,
    CPU: isGone ? undefined : `${Math.round(cpu * 100)} % of a core`,
    Memory: isGone ? undefined : megabytes(memoryBytes),
    MongoDB: storeAwayMs === undefined ? undefined : html`<strong>away for ${duration(storeAwayMs)}</strong>`,
    Queue: servers && `${servers.queue} at ${servers.redis}`,
    Database: servers && `${servers.database} at ${servers.mongodb}`,
    'Jobs that it has': activeJobs,
    'Bound of the queue': queueBounds && `${shown(queueBounds.threads)} threads, ${megabytes(queueBounds.bytes)}`,
    'Share of a tenant': process.tenantShare && `${process.tenantShare * 100} %`,
    'Replicas of Redis': process.redisReplicas,
  })
}

/** `accepted`, `stored` and `failed` are threads, the others requests. */
function countTable({ counts = {}, lastMinute = {} }: SeenProcess): Html {
  const rows = Object.entries(counts).map(([name, total]): Cell[] => [name, lastMinute[name] ?? 0, total])
  return table('Counts', ['What', '#In the last minute', '#Since its start'], rows, 'Nothing.')
}

async function completedBy(worker: string, visit: Visit): Promise<Html> {
  const { jobs } = await visit.view.listJobs({ state: 'completed', worker })
  const all = `/jobs?${new URLSearchParams({ state: 'completed', worker })}`
  return html`<h2><a href="${all}">Jobs that it completed last</a></h2>
<div id="completed" data-refresh>${jobTable('Completed jobs', jobs)}</div>`
}
