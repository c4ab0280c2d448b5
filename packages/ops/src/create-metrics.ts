// Creates the metrics of a process in the Prometheus text format.
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

interface Description<L extends string> {
  /** Without the prefix, in Prometheus's style: `requests_total`, `queue_time_seconds`. */
  name: string
  help: string
  labels?: readonly L[]
}

/** The metrics of one process. */
export type Metrics = ReturnType<typeof createMetrics>

/**
 * Creates metrics in a registry of their own, each line labelled with the process's name, together with Node.js's own
 * metrics under their usual names. `text()` returns the Prometheus text format, version 0.0.4.
 */
export function createMetrics({ prefix, process }: { prefix: string; process: string }) {
  const registry = new Registry()
  registry.setDefaultLabels({ process })
  collectDefaultMetrics({ register: registry })

  const configuration = <L extends string>({ name, help, labels = [] }: Description<L>) => ({
    name: `${prefix}${name}`,
    help,
    labelNames: labels,
    registers: [registry],
  })

  return {
    contentType: registry.contentType,
    text: () => registry.metrics(),
    counter: <const L extends string = never>(description: Description<L>) =>
      new Counter<L>(configuration(description)),
    /** `buckets` are upper bounds, ascending, in the metric's own unit. */
    histogram: <const L extends string = never>(description: Description<L> & { buckets: readonly number[] }) =>
      new Histogram<L>({ ...configuration(description), buckets: [...description.buckets] }),
    /** A gauge whose value is read at each scrape; NaN if `read` fails. */
    sampledGauge: (description: Description<never> & { read: () => number | Promise<number> }) =>
      new Gauge({
        ...configuration(description),
        async collect() {
          this.set(await valueOrNaN(description.read))
        },
      }),
  }
}

/** Returns NaN if a read fails: while one server is away, all other metrics are still scraped. */
async function valueOrNaN(read: () => number | Promise<number>): Promise<number> {
  try {
    return await read()
  } catch {
    return Number.NaN
  }
}
