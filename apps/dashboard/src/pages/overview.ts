// The overview: what waits, how fast it is stored, who fills the queue, and whether all processes live.
import type { HistoryPoint, Overview, SeenProcess } from '@sluice/contract'
import { type createReadHistory, type createReadOverview, LANES, type Lane, orUnavailable } from '@sluice/queue'
import { html } from 'hono/html'
import { chart } from './chart.ts'
import { actForm, count, duration, type Html, isOperator, moment, type Page, table, type Visit } from './layout.ts'

export interface OverviewDeps {
  readOverview: ReturnType<typeof createReadOverview>
  readHistory: ReturnType<typeof createReadHistory>
}

/** The shorter of the two spans of the rates, in minutes. */
const MINUTES = 5

/** Shows the overview. It reads heartbeats, so it needs no MongoDB and no Prometheus. */
export async function overviewPage({ readOverview, readHistory }: OverviewDeps, visit: Visit): Promise<Page> {
  const reads = Promise.all([readOverview(), ...([MINUTES, 60, 'hour', 'day'] as const).map(readHistory)])
  const [overview, lately = [], lastHour = [], hour = [], day = []] = await orUnavailable(reads)
  const { queued, processes } = overview
  const states = queued.map(
    ({ lane, state, jobs, threads, oldestMs }) =>
      html`<tr><td>${lane}</td><td>${state}</td><td class="number">${shown(jobs)}</td><td class="number">${shown(threads)}</td><td>${jobs > 0 && duration(oldestMs)}</td></tr>`,
  )
  const body = html`<div id="words" data-refresh>${words(overview)}</div>
<div id="lanes" data-refresh>${LANES.map((lane) => laneState(overview, lane, visit))}</div>
<div id="queue" data-refresh><h2>Queue</h2>${table('Queue', ['Lane', 'State', '#Jobs', '#Threads', 'Oldest'], states)}
<h2>Rates</h2>${table('Rates', ['Last', 'Accepted', 'Stored', '#Failed', '#Refused', 'In queue', 'In store'], [rateRow(`${MINUTES} min`, lately), rateRow('1 h', lastHour)])}</div>
<h2>The last hour</h2><div id="hour" data-refresh class="charts">${charts(hour, overview.at)}</div>
<h2>The last day</h2><div id="day" data-refresh class="charts">${charts(day, overview.at)}</div>
<div id="rest" data-refresh><h2>Who fills the queue?</h2>${tenants(overview, lastHour)}
${slowJobs(processes)}
<h2>Processes</h2>${table('Processes', ['Process', 'Version', 'Started', 'Seen', '#CPU', '#Memory'], processes.map(processRow))}</div>`
  return { title: 'Overview', body }
}

function words({ queued, redis, storeAwayMs, processes }: Overview): Html {
  const waiting = queued.reduce((sum, { state, jobs }) => sum + (state === 'waiting' ? jobs : 0), 0)
  const wait = `${count(waiting, 'job')} ${waiting === 1 ? 'waits' : 'wait'}.`
  const alive = processes.filter(({ kind, seenMsAgo }) => kind === 'worker' && seenMsAgo < ALIVE_MS)
  const problem =
    storeAwayMs !== undefined
      ? `MongoDB has been away for ${duration(storeAwayMs)}; ${wait}`
      : alive.length === 0 && `No worker has shown a sign of life for ${duration(ALIVE_MS)}; ${wait}`
  const { usedBytes, maxBytes } = redis
  const share = maxBytes > 0 ? ` of ${megabytes(maxBytes)} (${Math.round((usedBytes / maxBytes) * 100)} %)` : ''
  return html`${problem && html`<p class="problem">${problem}</p>`}
<p>${problem ? '' : `${count(alive.length, 'worker')} ${alive.length === 1 ? 'lives' : 'live'}, and none finds MongoDB away. `}Redis uses ${megabytes(usedBytes)}${share}.</p>`
}

/** A process that lives sends a sign every five seconds. */
const ALIVE_MS = 15_000

function laneState({ paused }: Overview, lane: Lane, visit: Visit): Html {
  const pause = paused[lane]
  const act = pause === undefined ? 'pause' : 'resume'
  const who = pause?.by === undefined ? '' : html` by ${pause.by}, ${moment(pause.since ?? '')}`
  return html`<div class="acts"><span>${pause === undefined ? `The ${lane} lane runs.` : html`<strong>The ${lane} lane is paused${who}.</strong>`}</span>
${isOperator(visit) && actForm(visit, `/lanes/${lane}/${act}`, html`<button class="quiet">${act === 'pause' ? 'Pause' : 'Resume'} ${lane}</button>`)}</div>`
}

const stored = ({ stored: { created, updated, unchanged } }: HistoryPoint) => created + updated + unchanged

function rateRow(name: string, [point]: readonly HistoryPoint[]): Html | '' {
  if (point === undefined) return ''
  const rate = (threads: number) => `${shown(threads)} (${perSecond(threads / point.minutes / 60)})`
  const times = [point.queueTime, point.storeTime].map(
    (time) => html`<td class="id">${time && `p50 ${seconds(time.p50)}, p99 ${seconds(time.p99)}`}</td>`,
  )
  return html`<tr><td>${name}</td><td>${rate(point.accepted)}</td><td>${rate(stored(point))}</td><td class="number">${shown(point.failed)}</td><td class="number">${shown(point.refused)}</td>${times}</tr>`
}

/** @param now the last point is not over yet. */
function charts(points: readonly HistoryPoint[], now: string): Html {
  const [{ at: begin } = { at: now }] = points
  const line = (name: string, of: (point: HistoryPoint) => number | undefined) => ({
    name,
    values: points.map(of),
  })
  const rate = (threadsOf: (point: HistoryPoint) => number) => (point: HistoryPoint) =>
    threadsOf(point) / Math.max(Math.min(point.minutes * 60, (Date.parse(now) - Date.parse(point.at)) / 1_000), 1)
  const inQueue = (['p50', 'p99'] as const).map((name) => line(name, ({ queueTime }) => queueTime?.[name]))
  const inStore = (['p50', 'p99'] as const).map((name) => line(name, ({ storeTime }) => storeTime?.[name]))
  const lines = [
    line(
      'accepted',
      rate(({ accepted }) => accepted),
    ),
    line('stored', rate(stored)),
  ]
  return html`${chart('Threads a second', begin, lines, perSecond)}
${chart(
  'Threads that wait',
  begin,
  LANES.map((lane) => line(lane, ({ waiting }) => waiting[lane])),
  shown,
)}
${chart('Time in queue', begin, inQueue, seconds)}
${chart('Time in the store', begin, inStore, seconds)}
${chart('Failures and refusals', begin, [line('threads', ({ failed }) => failed), line('requests', ({ refused }) => refused)], shown)}
${chart(
  'Oldest waiting job',
  begin,
  LANES.map((lane) => line(lane, ({ oldestSeconds }) => oldestSeconds[lane])),
  seconds,
)}`
}

/** The names of tenants that were refused may be cut. */
function tenants({ tenants: loaded }: Overview, [lastHour]: readonly HistoryPoint[]): Html {
  const refused = lastHour?.refusedByTenant ?? {}
  const names = new Set([...loaded.map(({ tenant }) => tenant), ...Object.keys(refused)])
  if (names.size === 0) return html`<p>No thread is in the queue, and no request was refused in the last hour.</p>`
  const loads = new Map(loaded.map(({ tenant, threads }) => [tenant, threads]))
  const rows = Array.from(
    names,
    (tenant) =>
      html`<tr><td>${tenant}</td><td class="number">${shown(loads.get(tenant) ?? 0)}</td><td class="number">${shown(refused[tenant] ?? 0)}</td></tr>`,
  )
  return table('Tenants', ['Tenant', '#Threads in the queue', '#Refused in the last hour'], rows)
}

function slowJobs(processes: readonly SeenProcess[]): Html | '' {
  const rows = processes.flatMap(({ host, pid, slowJobs: jobs = [] }) =>
    jobs.map(
      ({ id, name, activeMs }) =>
        html`<tr><td><a href="/jobs/${id}">${name}</a></td><td>${duration(activeMs)}</td><td>${host}:${pid}</td></tr>`,
    ),
  )
  if (rows.length === 0) return ''
  return html`<h2>Active for more than 10 s</h2>${table('Slow jobs', ['Job', 'For', 'Worker'], rows)}`
}

function processRow({ kind, host, pid, version, startedAt, seenMsAgo, cpu, memoryBytes }: SeenProcess): Html {
  return html`<tr><td>${kind} <span class="note">${host}:${pid}</span></td><td>${version}</td><td>${moment(startedAt)}</td>
<td>${duration(seenMsAgo)} ago</td><td class="number">${Math.round(cpu * 100)} %</td><td class="number">${megabytes(memoryBytes)}</td></tr>`
}

const shown = (value: number) => Math.round(value).toLocaleString('en')
const perSecond = (value: number) => `${value.toFixed(value < 1 ? 2 : value < 10 ? 1 : 0)}/s`
const seconds = (value: number) => (value < 10 ? `${shown(value * 1_000)} ms` : duration(value * 1_000))
const megabytes = (bytes: number) => `${shown(bytes / 1e6)} MB`
