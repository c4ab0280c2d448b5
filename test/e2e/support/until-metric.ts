import type { StartedProcess } from '@sluice/test-support'
import { until } from '../../support/until.ts'

/** A process's metrics, as Prometheus reads them from its admin port. */
export async function metricsOf(process: StartedProcess): Promise<string> {
  const { adminPort } = await process.line((line) => typeof line.adminPort === 'number')
  return (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text()
}

/** Sums the samples of a metric that have these labels. NaN without samples. */
export async function readMetric(
  process: StartedProcess,
  metric: `sluice_${string}`,
  labels: Record<string, string> = {},
): Promise<number> {
  const lines = (await metricsOf(process))
    .split('\n')
    .filter((line) => line.startsWith(`${metric}{`))
  const wanted = Object.entries(labels).map(([name, value]) => `${name}="${value}"`)
  const matching = lines.filter((line) => wanted.every((label) => line.includes(label)))
  if (matching.length === 0) return Number.NaN
  return matching.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}

/** Resolves once a metric of this process has this value. */
export async function untilMetric(
  process: StartedProcess,
  metric: `sluice_${string}`,
  value: number,
): Promise<void> {
  await until(`${metric} is ${value}`, async () => (await readMetric(process, metric)) === value)
}
