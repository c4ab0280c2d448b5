// The overview: what waits, how fast it is stored, who fills the queue, and whether all processes live.
import {
  type HistoryPoint,
  perSecondOf,
  type SeenProcess,
  type Status,
  storedOf,
  summarize,
  timesOf,
} from '@sluice/contract'
import type { CountedSpan } from '@sluice/operations'
import { LANES, type Lane } from '@sluice/queue'
import { html } from 'hono/html'
import { actForm, type Cell, count, duration, moment, shown, table } from './layout.ts'
import { type Html, isOperator, type Show, type Visit } from './page.ts'

/** Shows the overview. It reads heartbeats, so it needs no MongoDB and no Prometheus. */
export const overviewPage: Show = async (visit) => {
  const { readStatus, readHistory } = visit.view
  const [status, hour, day] = await Promise.all([readStatus(), readHistory('hour'), readHistory('day')])
  const { queued, processes, lastMinutes, lastHour } = status
  const states = queued.map(({ oldestMs, ...of }) => [
    of.lane,
    of.state,
    of.jobs,
    of.threads,
    of.jobs > 0 && duration(oldestMs),
  ])
  const { problems, liveWorkers, slowJobs, tenants } = summarize(status, duration)
  const [times, rates] = [[lastMinutes, lastHour].flatMap(timeRows), [lastMinutes, lastHour].map(rateCells)]
  const body = html`<div id="words" data-refresh>${words(status, problems[0], liveWorkers)}</div>
<div id="lanes" data-refresh>${LANES.map((lane) => laneState(status, lane, visit))}</div>
<div id="queue" data-refresh><h2>Queue</h2>${table('Queue', ['Lane', 'State', '#Jobs', '#Threads', 'Oldest'], states)}
<h2>From accepted to stored</h2>${table('Times', ['Last', 'Of', '#p50', '#p95', '#p99'], times, 'Nothing was stored.')}
<h2>Rates</h2>${table('Rates', ['Last', 'Accepted', 'Stored', '#Failed', '#Refused', '#Timed out'], rates)}</div>
<h2>The last hour</h2><div id="hour" data-refresh class="charts">${charts(hour)}</div>
<h2>The last day</h2><div id="day" data-refresh class="charts">${charts(day)}</div>
<div id="rest" data-refresh><h2>Who fills the queue?</h2>${tenantTable(tenants)}
${slowJobs.length > 0 && slowJobTable(slowJobs)}
<h2>Processes</h2>${table('Processes', ['Process', 'Version', 'Started', 'Seen', '#CPU', '#Memory'], processes.map(processCells))}</div>`
  return { title: 'Overview', body }
}

type Summary = ReturnType<typeof summarize>

function words({ redis: { usedBytes, maxBytes } }: Status, problem: string | undefined, alive: number): Html {
  const share = maxBytes > 0 ? ` of ${megabytes(maxBytes)} (${Math.round((usedBytes / maxBytes) * 100)} %)` : ''
  return html`${problem && html`<p class="problem">${problem}</p>`}
<p>${problem ? '' : `${count(alive, 'worker')} ${alive === 1 ? 'lives' : 'live'}, and none finds MongoDB away. `}Redis uses ${megabytes(usedBytes)}${share}.</p>`
}

function laneState({ paused }: Status, lane: Lane, visit: Visit): Html {
  const pause = paused[lane]
  const act = pause === undefined ? 'pause' : 'resume'
  const who = pause?.by === undefined ? '' : html` by ${pause.by}, ${moment(pause.since ?? '')}`
  return html`<div class="acts"><span>${pause === undefined ? `The ${lane} lane runs.` : html`<strong>The ${lane} lane is paused${who}.</strong>`}</span>
${isOperator(visit) && actForm(visit, `/lanes/${lane}/${act}`, html`<button class="quiet">${act === 'pause' ? 'Pause' : 'Resume'} ${lane}</button>`)}</div>`
}

const nameOf = ({ minutes }: HistoryPoint) => (minutes === 60 ? '1 h' : `${minutes} min`)

function timeRows(point: HistoryPoint): Cell[][] {
  return timesOf(point).map(({ of, p50, p95, p99 }) => {
    return [nameOf(point), of, seconds(p50), p95 === undefined ? '' : seconds(p95), seconds(p99)]
  })
}

function rateCells(point: HistoryPoint): Cell[] {
  const rate = (threads: number) => `${shown(threads)} (${perSecond(perSecondOf(point, threads))})`
  const { accepted, failed, refused, timedOut = 0 } = point
  return [nameOf(point), rate(accepted), rate(storedOf(point)), failed, refused, timedOut]
}

/** Draws what was counted in each span, oldest first. */
export function charts(points: readonly CountedSpan[]): Html {
  return html`${chart('Threads a second', perSecond, points, (point) => ({
    accepted: perSecondOf(point, point.accepted),
    stored: perSecondOf(point, storedOf(point)),
  }))}
${chart('Threads that wait', shown, points, ({ waiting }) => waiting)}
${chart('Accepted to stored, p99', seconds, points, ({ totalTime = {} }) => ({ interactive: totalTime.interactive?.p99, bulk: totalTime.bulk?.p99 }))}
${chart('Its parts, p99', seconds, points, ({ queueTime, storeTime }) => ({ 'in queue': queueTime?.p99, 'in store': storeTime?.p99 }))}
${chart('Failures and refusals', shown, points, ({ failed, refused }) => ({ threads: failed, requests: refused }))}
${chart('Oldest waiting job', seconds, points, ({ oldestSeconds }) => oldestSeconds)}`
}

function tenantTable(tenants: Summary['tenants']): Html {
  const rows = tenants.map(({ tenant, threads, refused }) => [tenant, threads, refused])
  const ifEmpty = 'No thread is in the queue, and no request was refused in the last hour.'
  return table('Tenants', ['Tenant', '#Threads in the queue', '#Refused in the last hour'], rows, ifEmpty)
}

function slowJobTable(jobs: Summary['slowJobs']): Html {
  const rows = jobs.map(({ id, name, activeMs, worker }): Cell[] => {
    return [html`<a href="/jobs/${id}">${name}</a>`, duration(activeMs), worker]
  })
  return html`<h2>Active for more than 10 s</h2>${table('Slow jobs', ['Job', 'For', 'Worker'], rows)}`
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
 * Draws a chart of at most two lines, the second one dashed. An undefined value is a gap, as is a time in which no
 * process lived.
 *
 * @param points oldest first
 * @param valuesOf returns the values of a point by the names of their lines
 */
function chart(
  title: string,
  shown: (value: number) => string,
  points: readonly CountedSpan[],
  valuesOf: (point: HistoryPoint) => Readonly<Record<string, number | undefined>>,
): Html {
  const values = points.map(({ point }) => (point === null ? undefined : valuesOf(point)))
  const names = Object.keys(values.find((value) => value !== undefined) ?? {})
  const drawn = names.map((name) => ({ name, values: values.map((value) => value?.[name]) }))
  const most = Math.max(0, ...drawn.flatMap(({ values }) => values.map((value) => value ?? 0)))
  const textOf = (value?: number) => (value === undefined ? 'nothing' : shown(value))
  const last = drawn.map(({ name, values }) => `${name} ${textOf(values.at(-1))} now`)
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
