// Draws a chart of what was counted over a span of time. It is SVG that the server renders: it can be printed, a screen
// reader reads its label, and page.js shows the values of the point under the pointer or chosen by the arrow keys.
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
  /** The value of now, in large letters. */
  now: string
  shown: (value: number) => string
  /** Returns the values of a point by the names of their lines. An undefined value is a gap. */
  valuesOf: (point: HistoryPoint) => Readonly<Record<string, number | undefined>>
}

const [WIDTH, HEIGHT, TOP, BOTTOM] = [480, 150, 18, 18]

/**
 * Draws a chart of at most two lines, the second one dashed. A time in which no process lived is a gap. A time in which
 * MongoDB was away has a background of its own.
 *
 * @param points oldest first
 */
export function chart(
  { title, now, shown, valuesOf }: Chart,
  points: readonly CountedSpan[],
  marks: readonly Mark[],
): Html {
  const values = points.map(({ point }) => (point === null ? undefined : valuesOf(point)))
  const names = Object.keys(values.find((value) => value !== undefined) ?? {})
  const drawn = names.map((name) => ({ name, values: values.map((value) => value?.[name]) }))
  const most = Math.max(0, ...drawn.flatMap(({ values }) => values.map((value) => value ?? 0)))
  const textOf = (value?: number) => (value === undefined ? 'nothing' : shown(value))
  const texts = points.map(({ at, point }, index) => {
    const found = drawn.map(({ name, values }) => `${name} ${textOf(values[index])}`).join(', ')
    const away = point?.storeAwaySeconds ? ', MongoDB away' : ''
    return `${at.slice(0, 16)}Z ${point === null ? 'no process lived' : found + away}`
  })
  const step = WIDTH / Math.max(points.length - 1, 1)
  const away = points.map(({ point }, at) => {
    const left = Math.max(at * step - step / 2, 0)
    return (
      point?.storeAwaySeconds &&
      html`<rect fill="gray" fill-opacity="0.3" x="${left.toFixed(1)}" y="${TOP}" width="${step.toFixed(1)}" height="${HEIGHT - TOP - BOTTOM}"/>`
    )
  })
  return html`<figure><figcaption>${title} ${drawn.map(({ name }, at) => html`<span class="line-${at}">${name}</span> `)}</figcaption>
<div class="now">${now}</div>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" tabindex="0" aria-label="${title}: ${now} now, ${shown(most)} at most" data-values="${JSON.stringify(texts)}">
${away}<path class="axis" d="M0 ${TOP}H${WIDTH}M0 ${HEIGHT - BOTTOM}H${WIDTH}"/>
${marks.map((mark) => markLine(mark, points))}
${drawn.map(({ values }, at) => html`<path class="line-${at}" d="${pathOf(values, most)}"/>`)}
<path class="pointer" d=""/>
<text x="0" y="${TOP - 5}">${shown(most)}</text>
<text x="0" y="${HEIGHT - 4}">${points[0]?.at.slice(11, 16)} UTC</text><text x="${WIDTH}" y="${HEIGHT - 4}" text-anchor="end">now</text>
</svg><output></output></figure>`
}

function markLine({ at, text }: Mark, points: readonly CountedSpan[]): Html | false {
  const [first, second] = points.map((point) => Date.parse(point.at))
  if (first === undefined || second === undefined) return false
  const place = (Date.parse(at) - first) / (second - first)
  if (place < 0 || place > points.length) return false
  const x = Math.min((place * WIDTH) / (points.length - 1), WIDTH).toFixed(1)
  return html`<path class="mark" d="M${x} ${TOP}V${HEIGHT - BOTTOM}"><title>${at.slice(0, 16)}Z ${text}</title></path>`
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
