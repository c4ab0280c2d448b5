import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

interface Described<L extends string> {
  /** Without the prefix, in Prometheus's manner: `requests_total`, `queue_time_seconds`. */
  name: string
  help: string
  labels?: readonly L[]
}

/** The metrics of one process. */
export type Metrics = ReturnType<typeof createMetrics>

/**
 * Metrics in a registry of their own, each line labelled with the process's name, together with what Node.js tells about
 * itself (under its usual names). `text()` gives the Prometheus text format, version 0.0.4.
 */
export function createMetrics({ prefix, process }: { prefix: string; process: string }) {
  const registry = new Registry()
  registry.setDefaultLabels({ process })
  collectDefaultMetrics({ register: registry })

  const about = <L extends string>({ name, help, labels = [] }: Described<L>) => ({
    name: `${prefix}${name}`,
    help,
    labelNames: labels,
    registers: [registry],
  })

  return {
    contentType: registry.contentType,
    text: () => registry.metrics(),
    counter: <const L extends string = never>(described: Described<L>) => new Counter<L>(about(described)),
    gauge: <const L extends string = never>(described: Described<L>) => new Gauge<L>(about(described)),
    /** `buckets` are upper bounds, ascending, in the metric's own unit. */
    histogram: <const L extends string = never>(described: Described<L> & { buckets: readonly number[] }) =>
      new Histogram<L>({ ...about(described), buckets: [...described.buckets] }),
    /** A gauge that is asked for its value whenever the metrics are read; NaN where `read` fails. */
    sampledGauge: (described: Described<never> & { read: () => number | Promise<number> }) =>
      new Gauge({
        ...about(described),
        async collect() {
          this.set(await valueOrNaN(described.read))
        },
      }),
  }
}

/** One source that is away must not take all other metrics with it. */
async function valueOrNaN(read: () => number | Promise<number>): Promise<number> {
  try {
    return await read()
  } catch {
    return Number.NaN
  }
}
