import { digits } from './format.ts'
import type { Result } from './result.ts'

const WIDTH = 760
const LABEL = 110
const BAR = 18
const ROW = 26
const HEAD = 58
/** Space for the figure at a bar's end. */
const TAIL = 70
const PANEL = (WIDTH - LABEL) / 2

interface Bar {
  value: number
  /** A second, longer value, drawn behind the first. */
  beyond?: number
}

/**
 * A picture of the medians: on the left threads a second, on the right p50 (dark) and p99 (light).
 * SVG.
 */
export function plot({
  title,
  at,
  where,
  measured: all,
}: Pick<Result, 'title' | 'at' | 'where' | 'measured'>): string {
  // The raw limit would dwarf all services, and its times are times of whole batches, not
  // comparable with requests.
  const measured = all.filter(({ name }) => name !== 'raw')
  const rates = measured.map(({ median }) => ({ value: median.rate }))
  const times = measured.map(({ median }) => ({ value: median.p50, beyond: median.p99 }))
  const height = HEAD + measured.length * ROW + 12
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" font-family="sans-serif" font-size="12" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${WIDTH}" height="${height}" fill="white"/>`,
    text(
      8,
      18,
      `${title} (${at.slice(0, 10)}, Node ${where.node}, ${where.cores} cores)`,
      'font-weight="bold"',
    ),
    text(LABEL, 42, 'threads a second'),
    text(LABEL + PANEL, 42, 'p50 and p99, ms'),
    ...measured.map(({ name }, row) => text(8, HEAD + row * ROW + 13, name)),
    ...bars(rates, LABEL, '#2b6cb0'),
    ...bars(times, LABEL + PANEL, '#2f855a'),
    '</svg>\n',
  ].join('\n')
}

function bars(all: readonly Bar[], left: number, colour: string): string[] {
  const longest = Math.max(
    ...all.map(({ value, beyond = 0 }) => Math.max(value, beyond)),
    Number.MIN_VALUE,
  )
  const length = (value: number) => Math.round((value / longest) * (PANEL - TAIL))
  return all.flatMap(({ value, beyond }, row) => {
    const top = HEAD + row * ROW
    const end = left + length(Math.max(value, beyond ?? 0)) + 5
    const figures = beyond === undefined ? digits(value) : `${digits(value)} / ${digits(beyond)}`
    const back = beyond === undefined ? [] : [rect(left, top, length(beyond), colour, 0.35)]
    return [...back, rect(left, top, length(value), colour, 1), text(end, top + 13, figures)]
  })
}

function rect(x: number, y: number, width: number, fill: string, opacity: number): string {
  return `<rect x="${x}" y="${y}" width="${width}" height="${BAR}" fill="${fill}" fill-opacity="${opacity}"/>`
}

function text(x: number, y: number, content: string, more = ''): string {
  return `<text x="${x}" y="${y}" ${more}>${escaped(content)}</text>`
}

function escaped(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
