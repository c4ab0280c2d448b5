import type { StartedProcess } from '@sluice/test-support'
import { until } from '../../support/until.ts'

type Metric = 'sluice_awaited_jobs' | 'sluice_accepted_total' | 'sluice_connections'

/** Reads a metric of an API replica from its admin port. */
export async function readMetric(api: StartedProcess, metric: Metric): Promise<number> {
  const { adminPort } = await api.line(({ msg }) => msg === 'api.listening')
  const metrics = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text()
  const line = metrics.split('\n').find((line) => line.startsWith(metric))
  return Number(line?.split(' ').at(-1))
}

/** Resolves once a metric of this API replica has this value on its admin port. */
export async function untilMetric(api: StartedProcess, metric: Metric, value: number): Promise<void> {
  await until(`${metric} is ${value}`, async () => (await readMetric(api, metric)) === value)
}
