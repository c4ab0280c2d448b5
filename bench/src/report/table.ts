import type { Measured } from '../scenarios/scenario.ts'
import { digits } from './format.ts'

/**
 * The medians of all contenders, with ratios to the first, as rows under a head, which begins with
 * the kind of server that served them.
 */
export function tableOf(
  measured: readonly Pick<Measured, 'median' | 'name'>[],
  server: string,
): string[][] {
  const first = measured[0]?.median
  const processes = [...new Set(measured.flatMap(({ median }) => Object.keys(median.cpuUs)))]
  const head = [
    server,
    'threads/s',
    'first is',
    'documents/s',
    'p50 ms',
    'p99 ms',
    'failed',
    `CPU µs a thread: ${processes.join(', ')}`,
    'MiB of each',
  ]
  const rows = measured.map(({ name, median }) => [
    name,
    digits(median.rate),
    `${digits((first?.rate ?? 0) / median.rate)}×`,
    digits(median.documentsPerSecond),
    digits(median.p50),
    digits(median.p99),
    String(median.failed),
    list(processes, median.cpuUs),
    list(processes, median.rssMb),
  ])
  return [head, ...rows]
}

/** Rows as lines with aligned columns: the first ones are texts, the others figures. */
export function aligned(rows: readonly string[][], texts = 1): string[] {
  const widths = (rows[0] ?? []).map((_, at) =>
    Math.max(...rows.map((row) => row[at]?.length ?? 0)),
  )
  return rows.map((row) =>
    row
      .map((cell, at) => {
        const width = widths[at] ?? 0
        return at < texts ? cell.padEnd(width) : cell.padStart(width)
      })
      .join('  '),
  )
}

/** Rows as a table in Markdown. */
export function markdownTable([head = [], ...rows]: readonly string[][]): string {
  const line = (row: readonly string[]) => `| ${row.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

function list(names: readonly string[], figures: Record<string, number>): string {
  return names
    .map((name) => (figures[name] === undefined ? '–' : Math.round(figures[name])))
    .join(', ')
}
