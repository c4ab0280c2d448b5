// The overview: how fast threads are stored, what waits, which lanes run, and whether all processes live.
import {
  ALIVE_MS,
  codeOf,
  type HistoryPoint,
  type Operation,
  perSecondOf,
  type SeenProcess,
  type Status,
  storedOf,
  summarize,
  timesOf,
} from '@sluice/contract'
import { type CountedSpan, duration, livingApi, loadOf, pauseWords, SPANS, type Span } from '@sluice/operations'
import { LANES, type Lane } from '@sluice/queue'
import { html } from 'hono/html'
import { type Chart, chart, type Mark } from './chart.ts'
import { actForm, type Cell, count, megabytes, moment, progress, shown, table, tenantLink } from './layout.ts'
import { type Html, isOperator, type Show, type Visit } from './page.ts'

const DEFAULT_SPAN: Span = '1 h'
const isSpan = (text: string | null): text is Span => text !== null && text in SPANS

/** Shows the overview. It reads heartbeats, so it needs no MongoDB and no Prometheus. */
export const overviewPage: Show = async (visit) => {
  const { readStatus, readHistory, listOperations } = visit.view
  const asked = visit.query.get('span')
  const span = isSpan(asked) ? asked : DEFAULT_SPAN
  const [status, points, operations] = await Promise.all([readStatus(), readHistory(span), listOperations()])
  const spans = Object.keys(SPANS).map(
    (name) =>
      html`<a href="/overview?${new URLSearchParams({ span: name })}"${name === span && html` aria-current="true"`}>${name}</a>`,
  )
  const { slowJobs, tenants } = summarize(status)
  const body = html`<nav aria-label="Time range">${spans}</nav>
<div id="charts" data-refresh class="charts">${charts(status, points, marksOf(status, operations))}</div>
<h2>Lanes</h2><div id="lanes" data-refresh>${table(
    'Lanes',
    LANE_HEADS,
    LANES.map((lane) => laneCells(status, lane)),
  )}</div>
${isOperator(visit) && html`<div id="lane-acts" data-refresh class="acts">${LANES.map((lane) => laneAct(status, lane, visit))}</div>`}
<div id="rest" data-refresh><h2>From accepted to stored</h2>
${table('Times', ['Last', 'Of', '#p50', '#p95', '#p99'], [status.lastMinutes, status.lastHour].flatMap(timeRows), 'Nothing was stored.')}
<h2 id="processes">Processes</h2>${processTables(status)}
<p class="note">${redisWords(status)}</p>
${slowJobs.length > 0 && slowJobTable(slowJobs)}
<h2 id="tenants">Tenants</h2>${tenantTable(tenants)}</div>`
  return { title: 'Overview', body, shows: status }
}

/**
 * Four charts: the rates, the threads that wait, the times, and the failures. The large values are those of the last
 * five minutes; of the threads that wait, those of now.
 */
export function charts(
  { queued, lastMinutes }: Pick<Status, 'queued' | 'lastMinutes'>,
  points: readonly CountedSpan[],
  marks: readonly Mark[],
): Html {
  const waiting = queued.filter(({ state }) => state === 'waiting')
  const threads = waiting.reduce((sum, of) => sum + of.threads, 0)
  const oldest = Math.max(0, ...waiting.map(({ oldestMs }) => oldestMs))
  const { totalTime = {}, failed, refused, timedOut = 0, forbidden = 0 } = lastMinutes
  const times = Object.entries(totalTime).map(([lane, time]) => `${lane} ${seconds(time.p99)}`)
  const rate = (threads: number) => perSecond(perSecondOf(lastMinutes, threads))
  const rates: Chart = {
    title: 'Threads a second',
    now: `${rate(lastMinutes.accepted)} accepted, ${rate(storedOf(lastMinutes))} stored`,
    shown: perSecond,
    valuesOf: (point) => ({
      accepted: perSecondOf(point, point.accepted),
      stored: perSecondOf(point, storedOf(point)),
    }),
  }
  const waitingThreads: Chart = {
    title: 'Threads that wait',
    now: `${shown(threads)}${threads > 0 ? `, the oldest for ${duration(oldest)}` : ''}`,
    shown,
    valuesOf: (point) => point.waiting,
  }
  const timesToStored: Chart = {
    title: 'From accepted to stored, p99',
    now: times.join(', ') || 'nothing stored lately',
    shown: seconds,
    valuesOf: ({ totalTime = {} }) => ({ interactive: totalTime.interactive?.p99, bulk: totalTime.bulk?.p99 }),
  }
  const failures: Chart = {
    title: 'Failures and refusals',
    now: `${count(failed, 'thread')} failed, ${count(refused, 'request')} refused, ${shown(timedOut)} timed out, ${shown(forbidden)} forbidden`,
    shown,
    valuesOf: (point) => ({ failed: point.failed, refused: point.refused + (point.timedOut ?? 0) }),
  }
  return html`${[rates, waitingThreads, timesToStored, failures].map((one) => chart(one, points, marks))}`
}

/** What operators did, and when a process of another version than before began. */
function marksOf({ processes }: Status, operations: readonly Operation[]): Mark[] {
  const acts = operations.map(({ createdAt, kind, lane, by, done }): Mark => {
    return { at: createdAt, text: `${kind} of ${lane ? `the ${lane} lane` : `${shown(done)} jobs`} by ${by}` }
  })
  const byVersion = new Map<string, SeenProcess>()
  for (const one of processes.toSorted((one, other) => one.startedAt.localeCompare(other.startedAt)))
    if (!byVersion.has(codeOf(one))) byVersion.set(codeOf(one), one)
  const begun = [...byVersion].map(([code, { startedAt, kind }]) => ({
    at: startedAt,
    text: `${code} began (${kind})`,
  }))
  return [...acts, ...begun]
}

const LANE_HEADS = ['Lane', '#Waiting', '#Active', '#Between tries', '#Failed', 'Oldest', 'Queue', 'State']

function laneCells({ queued, paused, load, processes, at }: Status, lane: Lane): Cell[] {
  const of = (state: string) => queued.find((one) => one.lane === lane && one.state === state)
  const oldest = Math.max(...['waiting', 'active', 'delayed'].map((state) => of(state)?.oldestMs ?? 0))
  const bounds = livingApi(processes)?.queueBounds
  const threads = loadOf(queued, lane)
  const most = (lane === 'interactive' ? bounds?.interactive : undefined) ?? bounds?.threads
  const fill =
    most &&
    load &&
    html`${progress(`Fill of the queue by the ${lane} lane`, threads, most)} <span class="note">${shown(threads)} of ${shown(most)} threads</span>`
  const pause = paused[lane]
  const state = pause === undefined ? 'runs' : html`<strong>paused</strong>${pauseWords(pause, at)}`
  const numbers = ['waiting', 'active', 'delayed', 'failed'].map((name) => of(name)?.threads ?? 0)
  return [
    html`<a href="/jobs?state=waiting&lane=${lane}">${lane}</a>`,
    ...numbers,
    oldest > 0 && duration(oldest),
    fill,
    state,
  ]
}

function laneAct({ paused }: Status, lane: Lane, visit: Visit): Html {
  if (paused[lane] !== undefined)
    return actForm(visit, `/lanes/${lane}/resume`, html`<button class="quiet">Resume ${lane}</button>`)
  const why = html`<input name="why" maxlength="200" required placeholder="why" aria-label="Why pause ${lane}">`
  return actForm(visit, `/lanes/${lane}/pause`, html`${why} <button class="quiet">Pause ${lane}</button>`)
}

const nameOf = ({ minutes }: HistoryPoint) => (minutes === 60 ? '1 h' : `${minutes} min`)

function timeRows(point: HistoryPoint): Cell[][] {
  return timesOf(point).map(({ of, p50, p95, p99 }) => {
    return [nameOf(point), of, seconds(p50), p95 === undefined ? '' : seconds(p95), seconds(p99)]
  })
}

const PROCESS_HEADS = ['Process', 'Version', 'Started', 'Seen', '#CPU', '#Memory', 'Has']

/** Those that live, then those that are gone. */
export function processTables({ processes }: Pick<Status, 'processes'>): Html {
  const [living = [], gone = []] = [false, true].map((isGone) =>
    processes.filter(({ seenMsAgo }) => seenMsAgo >= ALIVE_MS === isGone).map(processCells),
  )
  const goneTable = html`<details><summary>gone (${gone.length})</summary>${table('Gone processes', PROCESS_HEADS, gone)}</details>`
  return html`${table('Processes', PROCESS_HEADS, living, 'No process lives.')}${gone.length > 0 && goneTable}`
}

function processCells(process: SeenProcess): Cell[] {
  const { id, kind, host, pid, startedAt, seenMsAgo, cpu, memoryBytes, storeAwayMs, slowJobs = [] } = process
  const isGone = seenMsAgo >= ALIVE_MS
  const name = html`<a href="/processes/${id}">${kind}</a> <span class="note">${host}:${pid}</span>`
  const has = [storeAwayMs !== undefined && 'no MongoDB', slowJobs.length > 0 && count(slowJobs.length, 'slow job')]
  const load = isGone ? [undefined, undefined] : [`${Math.round(cpu * 100)} %`, megabytes(memoryBytes)]
  return [name, codeOf(process), moment(startedAt), seenWords(process), ...load, has.filter(Boolean).join(', ')]
}

/** When a process was seen. */
export function seenWords({ seenMsAgo }: SeenProcess): Html | string {
  const time = duration(seenMsAgo)
  return seenMsAgo >= ALIVE_MS ? html`<strong>gone for ${time}</strong>` : `${time} ago`
}

function redisWords({ redis: { usedBytes, maxBytes, replicas } }: Status): string {
  const share = maxBytes > 0 ? ` of ${megabytes(maxBytes)} (${Math.round((usedBytes / maxBytes) * 100)} %)` : ''
  return `Redis uses ${megabytes(usedBytes)}${share}${replicas ? `, and has ${count(replicas, 'replica')}` : ''}.`
}

type Summary = ReturnType<typeof summarize>

function tenantTable(tenants: Summary['tenants']): Html {
  const rows = tenants.map(({ tenant, threads, refused }): Cell[] => {
    return [tenantLink(tenant), threads, refused]
  })
  const ifEmpty = 'No thread is in the queue, and no request was refused in the last hour.'
  return table('Tenants', ['Tenant', '#Threads in the queue', '#Refused in the last hour'], rows, ifEmpty)
}

/** The jobs that workers have had for long. */
export function slowJobTable(jobs: Summary['slowJobs']): Html {
  const rows = jobs.map(({ id, name, activeMs, worker }): Cell[] => {
    return [html`<a href="/jobs/${id}">${name}</a>`, duration(activeMs), worker]
  })
  return html`<h2>Active for more than 10 s</h2>${table('Slow jobs', ['Job', 'For', 'Worker'], rows)}`
}

const perSecond = (value: number) => `${value.toFixed(value < 1 ? 2 : value < 10 ? 1 : 0)}/s`
const seconds = (value: number) => (value < 10 ? `${shown(value * 1_000)} ms` : duration(value * 1_000))
