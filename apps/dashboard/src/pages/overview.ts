// The overview: how fast threads are stored, what waits, which lanes run, and whether all processes
// are alive.
import {
  COUNT_NAMES,
  codeOf,
  countOf,
  type HistoryPoint,
  type Operation,
  perSecondOf,
  type SeenProcess,
  type Status,
  summarize,
} from '@sluice/contract'
import {
  type CountedSpan,
  duration,
  livingApi,
  loadOf,
  pauseWords,
  SPANS,
  type Span,
} from '@sluice/operations'
import { LANES, type Lane } from '@sluice/queue'
import { html } from 'hono/html'
import { type Chart, chart, type Mark, sinceData } from './chart.ts'
import {
  actForm,
  type Cell,
  type Html,
  isOperator,
  megabytes,
  type PageHandler,
  plural,
  progress,
  shown,
  table,
  type Visit,
} from './page.ts'
import { countTable, processTables, slowJobTable } from './processes.ts'
import { tenantTable } from './tenants.ts'

const DEFAULT_SPAN: Span = '1 h'
const isSpan = (text: string | null): text is Span => text !== null && text in SPANS

/** Shows the overview. It comes from heartbeats, so it needs neither MongoDB nor Prometheus. */
export const overviewPage: PageHandler = async (visit) => {
  const { readStatus, readHistory, listOperations } = visit.view
  const asked = visit.query.get('span')
  const span = isSpan(asked) ? asked : DEFAULT_SPAN
  const [status, points, operations] = await Promise.all([
    readStatus(),
    readHistory(span),
    listOperations(),
  ])
  const spans = Object.keys(SPANS).map(
    (name) =>
      html`<a href="/overview?${new URLSearchParams({ span: name })}"${name === span && html` aria-current="true"`}>${name}</a>`,
  )
  const { slowJobs, tenants } = summarize(status)
  const body = html`<nav aria-label="Time range">${spans}</nav>
<div id="charts" data-refresh><div class="charts">${charts(status, sinceData(points), marksOf(status, operations))}</div>
${LEGEND}</div>
<h2>Lanes</h2><div id="lanes" data-refresh>${table(
    'Lanes',
    LANE_HEADS,
    LANES.map((lane) => laneCells(status, lane, visit)),
  )}</div>
<div id="rest" data-refresh><h2>From accepted to stored</h2>
<div class="charts">${LANES.map((lane) => timeCard(lane, status))}</div>
<h2>Counts</h2>${countTable(COUNT_NAMES, {
    'Last 5 minutes': (name) => countOf(status.lastMinutes, name),
    'Last hour': (name) => countOf(status.lastHour, name),
  })}
<h2 id="processes">Processes</h2>${processTables(status)}
<p class="note">${redisWords(status)}</p>
${slowJobs.length > 0 && slowJobTable(slowJobs)}
<h2 id="tenants">Tenants</h2>${tenantTable(tenants)}</div>`
  return { title: 'Overview', body, shows: status }
}

const LEGEND = html`<p class="note legend"><span><svg viewBox="0 0 16 16" aria-hidden="true"><path class="mark" d="M8 0V16"/></svg> a pause, a retry, a discard, or a new version</span>
<span><svg viewBox="0 0 16 16" aria-hidden="true"><rect class="unavailable" width="16" height="16"/></svg> MongoDB was unavailable</span>
<span>a gap: no process lived</span> <span>times in <span class="zone">UTC</span></span> <span>a point leads to the jobs of its time</span></p>`

/** If a larger part of the incoming threads is affected, the number is red. */
const BAD_SHARE = 0.01

/**
 * Draws four charts: the rates, the waiting threads, the times, and the failures. The large numbers
 * cover the last five minutes, but the number of waiting threads is the present one.
 */
export function charts(
  { queued, lastMinutes }: Pick<Status, 'queued' | 'lastMinutes'>,
  points: readonly CountedSpan[],
  marks: readonly Mark[],
): Html {
  const waiting = queued.filter(({ state }) => state === 'waiting')
  const threads = waiting.reduce((sum, of) => sum + of.threads, 0)
  const oldest = Math.max(0, ...waiting.map(({ oldestMs }) => oldestMs))
  const { totalTime = {}, accepted, failed, refused } = lastMinutes
  const { timedOut = 0, forbidden = 0, invalid = 0 } = lastMinutes
  const times = Object.entries(totalTime).map(([lane, time]) => `${lane} ${seconds(time.p99)}`)
  const rate = (threads: number) => perSecond(perSecondOf(lastMinutes, threads))
  const rates: Chart = {
    title: 'Threads a second',
    now: `${rate(accepted)} accepted, ${rate(countOf(lastMinutes, 'stored'))} stored`,
    shown: perSecond,
    leastStep: 0.1,
    valuesOf: (point) => ({
      accepted: perSecondOf(point, point.accepted),
      stored: perSecondOf(point, countOf(point, 'stored')),
    }),
    jobs: COMPLETED,
  }
  const waitingThreads: Chart = {
    title: 'Threads that wait',
    now: `${shown(threads)}${threads > 0 ? `, the oldest for ${duration(oldest)}` : ''}`,
    shown,
    leastStep: 1,
    valuesOf: (point) => point.waiting,
    jobs: COMPLETED,
  }
  const timesToStored: Chart = {
    title: 'From accepted to stored, p99',
    now: times.join(', ') || 'nothing stored lately',
    shown: seconds,
    leastStep: 0.001,
    valuesOf: ({ totalTime = {} }) => ({
      interactive: totalTime.interactive?.p99,
      bulk: totalTime.bulk?.p99,
    }),
    jobs: COMPLETED,
  }
  const parts = { failed, refused, 'timed out': timedOut }
  const most = (accepted + refused) * BAD_SHARE
  const bad = Object.entries(parts).flatMap(([name, number]) => (number > most ? [name] : []))
  const words = Object.entries({ ...parts, forbidden, invalid })
    .filter(([, number]) => number > 0)
    .map(([name, number], at) => {
      const text = `${name === 'failed' ? plural(number, 'thread') : shown(number)} ${name}`
      const marked = bad.includes(name) ? html`<strong class="bad">${text}</strong>` : text
      return html`${at > 0 && ', '}${marked}`
    })
  const failures: Chart = {
    title: 'Failures and refusals',
    now: words.length > 0 ? html`${words}` : 'none lately',
    shown,
    leastStep: 1,
    valuesOf: ({ failed, refused, timedOut = 0 }) => ({ failed, refused, 'timed out': timedOut }),
    bad,
    jobs: '/jobs?state=failed',
  }
  return html`${[rates, waitingThreads, timesToStored, failures].map((one) => chart(one, points, marks))}`
}

const COMPLETED = '/jobs?state=completed'

/** Lists what operators did, and when a process with another version began. */
function marksOf({ processes }: Status, operations: readonly Operation[]): Mark[] {
  const acts = operations.map(({ createdAt, kind, lane, by, done }): Mark => {
    return {
      at: createdAt,
      text: `${kind} of ${lane ? `the ${lane} lane` : `${shown(done)} jobs`} by ${by}`,
    }
  })
  const byVersion = new Map<string, SeenProcess>()
  for (const one of processes.toSorted((one, other) =>
    one.startedAt.localeCompare(other.startedAt),
  ))
    if (!byVersion.has(codeOf(one))) byVersion.set(codeOf(one), one)
  const begun = [...byVersion].map(([code, { startedAt, kind }]) => ({
    at: startedAt,
    text: `${code} began (${kind})`,
  }))
  return [...acts, ...begun]
}

const LANE_HEADS = [
  'Lane',
  '#Waiting',
  '#Active',
  '#Between attempts',
  '#Failed',
  'Oldest',
  'Nearest bound',
  'State',
]

function laneCells(status: Status, lane: Lane, visit: Visit): Cell[] {
  const { queued, paused, at } = status
  const of = (state: string) => queued.find((one) => one.lane === lane && one.state === state)
  const oldest = Math.max(
    ...['waiting', 'active', 'delayed'].map((state) => of(state)?.oldestMs ?? 0),
  )
  const pause = paused[lane]
  const state =
    pause === undefined
      ? html`<span class="pill good">runs</span>`
      : html`<span class="pill bad">paused</span>${pauseWords(pause, at)}`
  const numbers = ['waiting', 'active', 'delayed', 'failed'].map((name) => of(name)?.threads ?? 0)
  return [
    html`<a href="/jobs?state=waiting&lane=${lane}">${lane}</a>`,
    ...numbers,
    oldest > 0 && duration(oldest),
    boundOf(status, lane),
    html`${state}${isOperator(visit) && laneAct(pause !== undefined, lane, visit)}`,
  ]
}

/** Shows the bound to which a lane is nearest. */
function boundOf({ queued, load, processes }: Status, lane: Lane): Html | false {
  const bounds = livingApi(processes)?.queueBounds
  if (bounds === undefined || load === undefined) return false
  const all = [
    { name: 'MAX_QUEUE_THREADS', now: load.threads, most: bounds.threads, of: shown },
    { name: 'MAX_QUEUE_BYTES', now: load.bytes, most: bounds.bytes, of: megabytes },
  ]
  if (lane === 'interactive' && bounds.interactive !== undefined)
    all.unshift({
      name: 'MAX_WAITING_SECONDS',
      now: loadOf(queued, lane),
      most: bounds.interactive,
      of: shown,
    })
  const nearest = all.reduce((one, other) =>
    other.now / other.most > one.now / one.most ? other : one,
  )
  const { name, now, most, of } = nearest
  return html`${progress(`Part of ${name} that is used`, now, most)} <span class="note">${of(now)} of ${of(most)}${of === shown && ' threads'} (${name})</span>`
}

function laneAct(isPaused: boolean, lane: Lane, visit: Visit): Html {
  if (isPaused)
    return html` ${actForm(visit, `/lanes/${lane}/resume`, html`<button class="quiet">Resume ${lane}</button>`)}`
  const sure = html`<label><input type="checkbox" name="confirmed" value="yes" required> Callers that wait get no answer in time</label>`
  const fields = html`<label>Reason <input name="why" maxlength="200" required></label>
<label>For how long <input name="for" list="times-${lane}" placeholder="30m, 2h; empty: until resumed" pattern="[0-9]+[smhdw]"></label>
<datalist id="times-${lane}"><option>15m<option>1h<option>4h<option>1d</datalist>
${lane === 'interactive' && sure}<button>Pause ${lane}</button>`
  return html` <details class="menu"><summary class="button quiet" aria-label="Pause … the ${lane} lane">Pause …</summary>
<div class="panel">${actForm(visit, `/lanes/${lane}/pause`, fields)}</div></details>`
}

/**
 * Shows how long the threads of a lane took in the last five minutes, compared with the last hour.
 */
function timeCard(
  lane: Lane,
  { lastMinutes, lastHour }: Pick<Status, 'lastMinutes' | 'lastHour'>,
): Html {
  const [now, hour] = [lastMinutes.totalTime?.[lane], lastHour.totalTime?.[lane]]
  const time = now ?? hour
  if (time === undefined)
    return html`<section class="card"><h3>${lane}</h3><p class="note">Nothing was stored in the last hour.</p></section>`
  const values = (['p50', 'p95', 'p99'] as const).map(
    (name) =>
      html`<div><dt>${name}</dt><dd>${seconds(time[name])} ${now && hour && change(now[name], hour[name])}</dd></div>`,
  )
  const span = now
    ? 'last 5 min, compared with the last hour'
    : 'last hour; nothing in the last 5 min'
  return html`<section class="card"><h3>${lane} <span class="note">${span}</span></h3><dl>${values}</dl>${partsOf(time)}</section>`
}

/** A smaller change is within the error of the estimate. */
const LEAST_CHANGE = 0.2

function change(now: number, before: number): Html | string {
  const share = before > 0 ? now / before - 1 : 0
  if (Math.abs(share) < LEAST_CHANGE)
    return html`<span class="note" title="As in the last hour">≈</span>`
  const times =
    share > 1
      ? `${(share + 1).toFixed(1)}×`
      : `${share > 0 ? '+' : '−'}${Math.round(Math.abs(share) * 100)} %`
  return html`<span class="${share > 0 ? 'bad' : 'good'}">${times}</span>`
}

/** Shows on what the time is spent, by a bar with two parts. */
function partsOf({
  inQueue,
  inStore,
}: NonNullable<NonNullable<HistoryPoint['totalTime']>[Lane]>): Html | false {
  if (inQueue === undefined || inStore === undefined) return false
  const width = (100 * inQueue) / Math.max(inQueue + inStore, 0.001)
  return html`<svg class="parts" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect class="line-1" width="100" height="8"/><rect class="line-0" width="${width.toFixed(1)}" height="8"/></svg>
<p class="note legend"><span class="line-0">queue ${seconds(inQueue)}</span> <span class="line-1">store ${seconds(inStore)}</span> medians</p>`
}

function redisWords({ redis: { usedBytes, maxBytes, replicas } }: Status): string {
  const share =
    maxBytes > 0 ? ` of ${megabytes(maxBytes)} (${Math.round((usedBytes / maxBytes) * 100)} %)` : ''
  return `Redis uses ${megabytes(usedBytes)}${share}${replicas ? `, and has ${plural(replicas, 'replica')}` : ''}.`
}

const few = (value: number) => (value < 10 ? Number(value.toPrecision(2)) : shown(value))
const perSecond = (value: number) => `${few(value)}/s`
const seconds = (value: number, most = value) =>
  most < 1 ? `${shown(value * 1_000)} ms` : `${few(value)} s`
