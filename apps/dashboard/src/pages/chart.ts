// Charts of the history, as SVG without a script. Their colours are those of the page, so dark pages have dark charts.
import type { HistoryPoint } from '@sluice/contract'
import { html } from 'hono/html'
import type { Html } from './page.ts'

const [WIDTH, HEIGHT, TOP, BOTTOM] = [480, 150, 18, 18]

/**
 * Draws a chart of at most two lines, the second one dashed. An undefined value is a gap.
 *
 * @param points of which the last one is that of now
 * @param valuesOf returns the values of a point by the names of their lines
 */
export function chart(
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
      // The line of no length shows a value between two gaps.
      return values[at - 1] === undefined ? `M${place}h0` : `L${place}`
    })
    .join('')
}
