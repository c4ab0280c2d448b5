// The overview: what waits, how fast it is stored, who fills the queue, and whether all processes live.
import type { HistoryPoint, Overview, SeenProcess } from '@sluice/contract'
import { ALIVE_MS } from '@sluice/contract'
import { LANES, type Lane, orUnavailable } from '@sluice/queue'
import { html } from 'hono/html'
import { actForm, type Cell, count, duration, moment, shown, table } from './layout.ts'
import { type Html, isOperator, type Show, type Visit } from './page.ts'

/** Shows the overview. It reads heartbeats, so it needs no MongoDB and no Prometheus. */
export const overviewPage: Show = async (visit, { readOverview, readHistory }) => {
  const reads = Promise.all([readOverview(), ...([5, 60, 'hour', 'day'] as const).map(readHistory)])
  const [overview, lately = [], lastHour = [], hour = [], day = []] = await orUnavailable(reads)
  const { at, queued, processes } = overview
  const states = queued.map(({ oldestMs, ...of }) => [
    of.lane,
    of.state,
    of.jobs,
    of.threads,
    of.jobs > 0 && duration(oldestMs),
  ])
  const rates = [...lately, ...lastHour].map(rateCells)
  const body = html`<div id="words" data-refresh>${words(overview)}</div>
<div id="lanes" data-refresh>${LANES.map((lane) => laneState(overview, lane, visit))}</div>
<div id="queue" data-refresh><h2>Queue</h2>${table('Queue', ['Lane', 'State', '#Jobs', '#Threads', 'Oldest'], states)}
<h2>Rates</h2>${table('Rates', ['Last', 'Accepted', 'Stored', '#Failed', '#Refused', 'In queue', 'In store'], rates)}</div>
<h2>The last hour</h2><div id="hour" data-refresh class="charts">${charts(hour, at)}</div>
<h2>The last day</h2><div id="day" data-refresh class="charts">${charts(day, at)}</div>
<div id="rest" data-refresh><h2>Who fills the queue?</h2>${tenants(overview, lastHour)}
${slowJobs(processes)}
<h2>Processes</h2>${table('Processes', ['Process', 'Version', 'Started', 'Seen', '#CPU', '#Memory'], processes.map(processCells))}</div>`
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

function laneState({ paused }: Overview, lane: Lane, visit: Visit): Html {
  const pause = paused[lane]
  const act = pause === undefined ? 'pause' : 'resume'
  const who = pause?.by === undefined ? '' : html` by ${pause.by}, ${moment(pause.since ?? '')}`
  return html`<div class="acts"><span>${pause === undefined ? `The ${lane} lane runs.` : html`<strong>The ${lane} lane is paused${who}.</strong>`}</span>
${isOperator(visit) && actForm(visit, `/lanes/${lane}/${act}`, html`<button class="quiet">${act === 'pause' ? 'Pause' : 'Resume'} ${lane}</button>`)}</div>`
}

const stored = ({ stored: { created, updated, unchanged } }: HistoryPoint) => created + updated + unchanged

function rateCells(point: HistoryPoint): Cell[] {
  const name = point.minutes === 60 ? '1 h' : `${point.minutes} min`
  const rate = (threads: number) => `${shown(threads)} (${perSecond(threads / point.minutes / 60)})`
  const [inQueue, inStore] = [point.queueTime, point.storeTime].map(
    (time) => time && html`<span class="id">p50 ${seconds(time.p50)}, p99 ${seconds(time.p99)}</span>`,
  )
  return [name, rate(point.accepted), rate(stored(point)), point.failed, point.refused, inQueue, inStore]
}

/** @param now the end of the last point so far: its minutes are not over yet. */
function charts(points: readonly HistoryPoint[], now: string): Html {
  const rate = (threads: number, { at, minutes }: HistoryPoint) =>
    threads / Math.max(Math.min(minutes * 60, (Date.parse(now) - Date.parse(at)) / 1_000), 1)
  return html`${chart('Threads a second', perSecond, points, (point) => ({
    accepted: rate(point.accepted, point),
    stored: rate(stored(point), point),
  }))}
${chart('Threads that wait', shown, points, ({ waiting }) => waiting)}
${chart('Time in queue', seconds, points, ({ queueTime }) => ({ p50: queueTime?.p50, p99: queueTime?.p99 }))}
${chart('Time in the store', seconds, points, ({ storeTime }) => ({ p50: storeTime?.p50, p99: storeTime?.p99 }))}
${chart('Failures and refusals', shown, points, ({ failed, refused }) => ({ threads: failed, requests: refused }))}
${chart('Oldest waiting job', seconds, points, ({ oldestSeconds }) => oldestSeconds)}`
}

/** Heartbeats cut the long name of a refused tenant, so such a tenant may have two rows. */
function tenants({ tenants: loaded }: Overview, [lastHour]: readonly HistoryPoint[]): Html {
  const refused = lastHour?.refusedByTenant ?? {}
  const loads = new Map(loaded.map(({ tenant, threads }) => [tenant, threads]))
  const names = new Set([...loads.keys(), ...Object.keys(refused)])
  const rows = Array.from(names, (tenant) => [tenant, loads.get(tenant) ?? 0, refused[tenant] ?? 0])
  const ifEmpty = 'No thread is in the queue, and no request was refused in the last hour.'
  return table('Tenants', ['Tenant', '#Threads in the queue', '#Refused in the last hour'], rows, ifEmpty)
}

function slowJobs(processes: readonly SeenProcess[]): Html | false {
  const rows = processes.flatMap(({ host, pid, slowJobs: jobs = [] }) =>
    jobs.map(({ id, name, activeMs }): Cell[] => {
      return [html`<a href="/jobs/${id}">${name}</a>`, duration(activeMs), `${host}:${pid}`]
    }),
  )
  const list = table('Slow jobs', ['Job', 'For', 'Worker'], rows)
  return rows.length > 0 && html`<h2>Active for more than 10 s</h2>${list}`
}

function processCells({ kind, host, pid, version, startedAt, seenMsAgo, cpu, memoryBytes }: SeenProcess): Cell[] {
  const name = html`${kind} <span class="note">${host}:${pid}</span>`
  const load = [`${Math.round(cpu * 100)} %`, megabytes(memoryBytes)]
  return [name, version, moment(startedAt), `${duration(seenMsAgo)} ago`, ...load]
}

const perSecond = (value: number) => `${value.toFixed(value < 1 ? 2 : value < 10 ? 1 : 0)}/s`
const seconds = (value: number) => (value < 10 ? `${shown(value * 1_000)} ms` : duration(value * 1_000))
const megabytes = (bytes: number) => `${shown(bytes / 1e6)} MB`

const [WIDTH, HEIGHT, TOP, BOTTOM] = [480, 150, 18, 18]

/**
 * Draws a chart of at most two lines, the second one dashed. An undefined value is a gap.
 *
 * @param points oldest first
 * @param valuesOf returns the values of a point by the names of their lines
 */
function chart(
  title: string,
  shown: (value: number) => string,
  points: readonly HistoryPoint[],
  valuesOf: (point: HistoryPoint) => Readonly<Record<string, number | undefined>>,
): Html {
  const values = points.map(valuesOf)
  const drawn = Object.keys(values[0] ?? {}).map((name) => ({ name, values: values.map((value) => value[name]) }))
  const most = Math.max(...drawn.flatMap(({ values }) => values.map((value) => value ?? 0)))
  const last = drawn.map(({ name, values }) => `${name} ${shown(values.at(-1) ?? 0)} now`)
  const text = `${title}: ${last.join(', ')}, ${shown(most)} at most`
  return html`<figure><figcaption>${title} ${drawn.map(({ name }, at) => html`<span class="line-${at}">${name}</span> `)}</figcaption>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${text}">
<path class="axis" d="M0 ${TOP}H${WIDTH}M0 ${HEIGHT - BOTTOM}H${WIDTH}"/>
${drawn.map(({ values }, at) => html`<path class="line-${at}" d="${pathOf(values, most)}"/>`)}
<text x="0" y="${TOP - 5}">${shown(most)}</text>
<text x="0" y="${HEIGHT - 4}">${points[0]?.at.slice(11, 16)} UTC</text><text x="${WIDTH}" y="${HEIGHT - 4}" text-anchor="end">now</text>
</svg></figure>`
}

function pathOf(values: readonly (number | undefined)[], most: number): string {
  const step = WIDTH / Math.max(values.length - 1, 1)
  const height = HEIGHT - TOP - BOTTOM
  return values
    .map((value, at) => {
      if (value === undefined) return ''
      const place = `${(at * step).toFixed(1)} ${(HEIGHT - BOTTOM - (value / (most || 1)) * height).toFixed(1)}`
      // `h0`, a line of no length, shows a value between two gaps.
      return values[at - 1] === undefined ? `M${place}h0` : `L${place}`
    })
    .join('')
}
