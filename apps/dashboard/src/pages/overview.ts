// The overview: how fast threads are stored, what waits, which lanes run, and whether all processes
// are alive. Its charts show what was counted over a span of time. A chart is SVG that the server
// renders, and a screen reader reads its label. Each point is a link to the jobs of the point's
// time. page.js shows the values of the point under the pointer, or of the one that the arrow keys
// select.
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
import {
  actForm,
  type Cell,
  folded,
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

/** Shows the overview from heartbeats, so it works without MongoDB and Prometheus. */
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
${folded('Show the times', html`<div class="charts">${LANES.map((lane) => timeCard(lane, status))}</div>`)}
<h2>Counts</h2>${folded(
    'Show the counts',
    countTable(COUNT_NAMES, {
      'Last 5 minutes': (name) => countOf(status.lastMinutes, name),
      'Last hour': (name) => countOf(status.lastHour, name),
    }),
  )}
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
  }
  const waitingThreads: Chart = {
    title: 'Threads that wait',
    now: `${shown(threads)}${threads > 0 ? `, the oldest for ${duration(oldest)}` : ''}`,
    shown,
    leastStep: 1,
    valuesOf: (point) => point.waiting,
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
  '#Delayed',
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
      ? `${(share + 1).toFixed(share < 9 ? 1 : 0)}×`
      : `${share > 0 ? '+' : '−'}${Math.round(Math.abs(share) * 100)} %`
  return html`<span class="${share > 0 ? 'bad' : 'good'}">${times}</span>`
}

/** Shows what the time is spent on, as a bar with two parts. */
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

/** Something that happened at a time, such as a pause. */
interface Mark {
  at: string
  text: string
}

interface Chart {
  title: string
  /** The present value, in large letters. */
  now: Html | string
  /** @param most the highest value of the axis, which decides its unit. */
  shown: (value: number, most?: number) => string
  /** The smallest distance between two lines of the grid. */
  leastStep: number
  /** Returns the values of a point, by the names of the lines. An undefined value is a gap. */
  valuesOf: (point: HistoryPoint) => Readonly<Record<string, number | undefined>>
  /** The names of the lines whose values are too high. */
  bad?: readonly string[]
  /**
   * The path of the jobs of a point. `since` and `until` are added to it. Default: completed jobs.
   */
  jobs?: string
}

/** The size of the drawing in its own units. The browser scales it to the page. */
const [WIDTH, HEIGHT] = [1_000, 100]
const MINUTE_MS = 60_000
/** A chart has at least this number of points, even if no process lived in most of them. */
const LEAST_POINTS = 5

/** Cuts off the beginning of a span, as long as no process lived. */
export function sinceData(points: readonly CountedSpan[]): readonly CountedSpan[] {
  const first = points.findIndex(({ point }) => point !== null)
  return points.slice(Math.max(Math.min(first, points.length - LEAST_POINTS), 0))
}

/**
 * Draws a chart of at most three lines, which also differ by their dashes. If no process lived at a
 * time, there is a gap. If MongoDB was unavailable, the background is different.
 *
 * @param points oldest first.
 */
function chart(
  { title, now, shown, leastStep, valuesOf, bad = [], jobs = '/jobs?state=completed' }: Chart,
  points: readonly CountedSpan[],
  marks: readonly Mark[],
): Html {
  const values = points.map(({ point }) => (point === null ? undefined : valuesOf(point)))
  const names = Object.keys(values.find((value) => value !== undefined) ?? {})
  const lines = names.map((name, at) => {
    return {
      name,
      className: `line-${at}${bad.includes(name) ? ' bad' : ''}`,
      values: values.map((one) => one?.[name]),
    }
  })
  const most = Math.max(0, ...lines.flatMap(({ values }) => values.map((value) => value ?? 0)))
  const grid = gridOf(most, leastStep)
  const top = grid[0] ?? 1
  const step = WIDTH / Math.max(points.length - 1, 1)
  const [first = 0, second = MINUTE_MS] = points.map(({ at }) => Date.parse(at))
  const pointMs = second - first
  const inSpan = marks
    .map(({ at, text }) => ({ text, place: (Date.parse(at) - first) / pointMs }))
    .filter(({ place }) => place >= 0 && place < points.length)
  const hits = points.map(({ at, point }, index) => {
    const found = lines.map(
      ({ name, values }) =>
        `${name} ${values[index] === undefined ? 'nothing' : shown(values[index])}`,
    )
    const happened = inSpan
      .filter(({ place }) => Math.floor(place) === index)
      .map(({ text }) => text)
    const all =
      point === null
        ? ['no process lived']
        : [...found, ...(point.storeAwaySeconds ? ['MongoDB unavailable'] : [])]
    const [since, until] = [0, pointMs].map((ms) => minuteOf(Date.parse(at) + ms))
    const query = new URLSearchParams({ since: since ?? at, until: until ?? at })
    const column = columnOf(index * step, step)
    return html`<a href="${jobs}&${query}" tabindex="-1"><title>${since} ${[...all, ...happened].join(', ')}</title><rect ${column}${point?.storeAwaySeconds ? html` class="unavailable"` : ''}/></a>`
  })
  const heights = grid.map((value) => `M0 ${placeOf(value, top)}H${WIDTH}`).join('')
  const ticks = ticksOf(points)
  return html`<figure><figcaption><strong>${title}</strong> ${lines.map(({ name, className }) => html`<span class="${className}">${name}</span> `)}</figcaption>
<div class="now">${now}</div>
<div class="plot"><div class="scale" aria-hidden="true">${grid.map((value) => html`<span>${shown(value, top)}</span>`)}</div>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="group" tabindex="0" aria-label="${title}">
<path class="axis" d="${heights}${ticks.map(({ place }) => `M${(place * step).toFixed(1)} 0V${HEIGHT}`).join('')}"/>
${inSpan.map(({ place }) => html`<path class="mark" d="M${Math.min(place * step, WIDTH).toFixed(1)} 0V${HEIGHT}"/>`)}
${lines.map(({ values, className }) => html`<path class="${className}" d="${pathOf(values, top)}"/>`)}
<path class="pointer" d=""/>${hits}</svg>
<svg class="times" aria-hidden="true">${ticks.map(({ at, place, text }) => html`<text x="${((place * step) / WIDTH) * 100}%" y="14" data-at="${at}">${text}</text>`)}</svg></div>
<output class="note">highest: ${shown(most)}</output></figure>`
}

/** The part of the drawing that is nearer to this point than to any other. */
function columnOf(x: number, step: number): Html {
  const left = Math.max(x - step / 2, 0)
  return html`x="${left.toFixed(1)}" y="0" width="${(Math.min(x + step / 2, WIDTH) - left).toFixed(1)}" height="${HEIGHT}"`
}

/**
 * Returns the values of the grid's lines, the highest first: two to four equal steps of 1, 2 or 5
 * (or a power of ten times that).
 */
function gridOf(most: number, least: number): number[] {
  const ten = 10 ** Math.floor(Math.log10(Math.max(most / 3, least)))
  const step = Math.max(
    [1, 2, 5, 10].map((times) => times * ten).find((one) => one * 3.01 >= most) ?? most,
    least,
  )
  const count = Math.max(Math.ceil(most / step), 2)
  return Array.from({ length: count + 1 }, (_, at) => Number(((count - at) * step).toPrecision(6)))
}

const TICK_MINUTES = [1, 2, 5, 10, 15, 30, 60, 120, 240, 360]
const MOST_TICKS = 6

/** Returns the round times on the axis. The first time of a day is shown as the day. */
function ticksOf(points: readonly CountedSpan[]) {
  const minutes = points.map(({ at }) => Math.floor(Date.parse(at) / MINUTE_MS))
  const length = (minutes.at(-1) ?? 0) - (minutes[0] ?? 0)
  const every = TICK_MINUTES.find((one) => length / one < MOST_TICKS) ?? 360
  return points.flatMap(({ at }, place) => {
    const text = at.slice(11, 16)
    return (minutes[place] ?? 0) % every === 0
      ? [{ at, place, text: text === '00:00' ? at.slice(5, 10) : text }]
      : []
  })
}

const minuteOf = (ms: number) => `${new Date(ms).toISOString().slice(0, 16)}Z`
const placeOf = (value: number, top: number) => (HEIGHT - (value / top) * HEIGHT).toFixed(1)

function pathOf(values: readonly (number | undefined)[], top: number): string {
  const step = WIDTH / Math.max(values.length - 1, 1)
  return values
    .map((value, at) => {
      if (value === undefined) return ''
      const place = `${(at * step).toFixed(1)} ${placeOf(value, top)}`
      // A short line shows a value between two gaps.
      const isAlone = values[at + 1] === undefined
      return values[at - 1] === undefined ? `M${place}${isAlone ? 'm-6 0h12' : ''}` : `L${place}`
    })
    .join('')
}
