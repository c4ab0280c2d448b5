// Draws a chart of what was counted over a span of time. It is SVG that the server renders, and a
// screen reader reads its label. Each point is a link to the jobs of the point's time. page.js shows
// the values of the point under the pointer, or of the one that the arrow keys select.
import type { HistoryPoint } from '@sluice/contract'
import type { CountedSpan } from '@sluice/operations'
import { html } from 'hono/html'
import type { Html } from './page.ts'

/** Something that happened at a time, such as a pause. */
export interface Mark {
  at: string
  text: string
}

export interface Chart {
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
  /** The path of the jobs of a point. `since` and `until` are added to it. */
  jobs: string
}

/** The drawing has this size in its own units, whatever its size on the screen. */
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
export function chart(
  { title, now, shown, leastStep, valuesOf, bad = [], jobs }: Chart,
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
<output class="note">${shown(most)} at most</output></figure>`
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
