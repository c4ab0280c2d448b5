/** A process's current metrics. Each reading resets the longest event-loop stall. */
export async function metricsOf(adminUrl: string): Promise<Metrics> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text()
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  const samples = lines.map((line) => {
    const end = line.lastIndexOf(' ')
    return { name: line.slice(0, end).split('{', 1)[0] ?? '', value: Number(line.slice(end + 1)) }
  })
  const values = (name: string) =>
    samples.filter((sample) => sample.name === name).map(({ value }) => value)
  return {
    sum: (name) => values(name).reduce((sum, value) => sum + value, 0),
    longestStallMs: (values('nodejs_eventloop_lag_max_seconds')[0] ?? 0) * 1000,
  }
}

export interface Metrics {
  /** Sums a metric over all its labels. */
  sum(name: string): number
  longestStallMs: number
}
