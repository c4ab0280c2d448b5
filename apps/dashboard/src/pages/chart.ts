// Charts over time, as SVG that needs no script. Their colours are those of the page, so dark pages have dark charts.
import { html } from 'hono/html'
import type { Html } from './layout.ts'

/** A line of a chart. An undefined value is a gap. */
export interface Line {
  name: string
  values: readonly (number | undefined)[]
}

const [WIDTH, HEIGHT, TOP, BOTTOM] = [480, 150, 18, 18]

/**
 * Draws at most two lines, the second one dashed.
 *
 * @param begin the time of the first values. The last ones are those of now.
 */
export function chart(title: string, begin: string, lines: readonly Line[], shown: (value: number) => string): Html {
  const most = Math.max(...lines.flatMap(({ values }) => values.map((value) => value ?? 0)))
  const last = ({ name, values }: Line) => `${name} ${shown(values.at(-1) ?? 0)} now`
  const text = `${title}: ${lines.map(last).join(', ')}, ${shown(most)} at most`
  return html`<figure><figcaption>${title} ${lines.map(({ name }, at) => html`<span class="line-${at}">${name}</span> `)}</figcaption>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${text}">
<path class="axis" d="M0 ${TOP}H${WIDTH}M0 ${HEIGHT - BOTTOM}H${WIDTH}"/>
${lines.map(({ values }, at) => html`<path class="line-${at}" d="${pathOf(values, most)}"/>`)}
<text x="0" y="${TOP - 5}">${shown(most)}</text>
<text x="0" y="${HEIGHT - 4}">${begin.slice(11, 16)} UTC</text><text x="${WIDTH}" y="${HEIGHT - 4}" text-anchor="end">now</text>
</svg></figure>`
}

function pathOf(values: Line['values'], most: number): string {
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
