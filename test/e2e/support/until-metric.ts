import type { StartedProcess } from '@sluice/test-support'
import { until } from '../../faults/until.ts'

type Metric = 'sluice_awaited_jobs' | 'sluice_accepted_total'

/** Resolves once a metric of this API replica has this value on its admin port. */
export async function untilMetric(api: StartedProcess, metric: Metric, value: number): Promise<void> {
  const { adminPort } = await api.line(({ msg }) => msg === 'api.listening')
  await until(`${metric} is ${value}`, 10_000, async () => {
    const metrics = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text()
    const line = metrics.split('\n').find((line) => line.startsWith(metric))
    return line?.split(' ').at(-1) === String(value)
  })
}
