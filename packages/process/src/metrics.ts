// Declares metrics (names, kinds and labels), and serves a process's metrics in the Prometheus text
// format.
import { version as node } from 'node:process'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import about from '../package.json' with { type: 'json' }

/** The version of Sluice. */
export const VERSION = about.version

type DeclaredMetric<M> = ReturnType<typeof declare<string, M>>

interface About<L extends string> {
  /** Follows Prometheus's conventions: a base unit, and `_total` for a counter. */
  name: `sluice_${string}`
  help: string
  labels?: readonly L[]
}

type Options<L extends string> = {
  name: string
  help: string
  labelNames: readonly L[]
  registers: Registry[]
}

function declare<L extends string, M>(
  type: 'counter' | 'gauge' | 'histogram',
  { name, help, labels = [] }: About<L>,
  create: (options: Options<L>) => M,
) {
  const open = (registry: Registry) =>
    create({ name, help, labelNames: labels, registers: [registry] })
  return { type, name, help, labels, open }
}

/**
 * Declares metrics, with one function for each kind. `buckets` are ascending upper bounds, in the
 * metric's unit.
 */
export const metric = {
  counter: <const L extends string = never>(about: About<L>) =>
    declare('counter', about, (options) => new Counter<L>(options)),
  gauge: <const L extends string = never>(about: About<L>) =>
    declare('gauge', about, (options) => new Gauge<L>(options)),
  histogram: <const L extends string = never>({
    buckets,
    ...about
  }: About<L> & { buckets: readonly number[] }) =>
    declare(
      'histogram',
      about,
      (options) => new Histogram<L>({ ...options, buckets: [...buckets] }),
    ),
}

/** Buckets for times of at most some seconds. */
export const SECONDS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
] as const

/** Metrics by their names in the code. */
export type MetricDeclarations = Readonly<Record<string, DeclaredMetric<unknown>>>

/** The metrics of a set of declarations. */
export type MetricsOf<D extends MetricDeclarations> = {
  readonly [K in keyof D]: D[K] extends DeclaredMetric<infer M> ? M : never
}

/** The metrics of every process. Each app declares further ones. */
export const processMetrics = {
  buildInfo: metric.gauge({
    name: 'sluice_build_info',
    help: 'Always 1. The labels have the version of Sluice and of Node.js.',
    labels: ['version', 'node'],
  }),
  redisTime: metric.histogram({
    name: 'sluice_redis_command_seconds',
    help: 'Time from sending a script to Redis until its reply.',
    labels: ['command'],
    buckets: SECONDS,
  }),
  redisErrors: metric.counter({
    name: 'sluice_redis_errors_total',
    help: 'Failed scripts, by the first word of Redis’s error (OOM, READONLY …), or `connection`.',
    labels: ['code'],
  }),
}

/** The metrics of processes that use MongoDB. */
export const mongoMetrics = {
  mongoTime: metric.histogram({
    name: 'sluice_mongodb_command_seconds',
    help: 'Time from sending a command to MongoDB until its reply.',
    labels: ['command'],
    buckets: SECONDS,
  }),
  mongoErrors: metric.counter({
    name: 'sluice_mongodb_errors_total',
    help: 'Failed commands, by MongoDB’s code (121 …) or the driver’s error. `timeout`: no reply in time.',
    labels: ['code'],
  }),
}

/**
 * The event loop's lag is measured this often. With Node's default, every 10 ms, it took 1 % of a
 * CPU in an idle process.
 */
const LAG_EVERY_MS = 50

/**
 * Node.js's gauges that `promtool check metrics` refuses, because only names of counters may end in
 * `_total`.
 */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]

/** The metrics that a process's admin port serves. */
export type Metrics = Pick<ReturnType<typeof openMetrics>, 'text' | 'contentType'>

/**
 * Opens the declared metrics, and Node.js's own, in a new registry. Each sample has the label
 * `process`.
 */
export function openMetrics<D extends MetricDeclarations>(process: string, declarations: D) {
  const registry = new Registry()
  registry.setDefaultLabels({ process })
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LAG_EVERY_MS })
  for (const name of MISNAMED) registry.removeSingleMetric(name)
  const { buildInfo, ...shared } = openAll(registry, processMetrics)
  buildInfo.set({ version: VERSION, node }, 1)
  const samplers: (() => Promise<void>)[] = []

  return {
    contentType: registry.contentType,
    metrics: { ...shared, ...openAll(registry, declarations) },
    /**
     * Calls `read`, which sets these gauges, before each scrape. If `read` fails, for example while
     * a server is unavailable, the gauges have no sample.
     */
    sample(gauges: readonly Gauge<string>[], read: () => void | Promise<void>): void {
      samplers.push(async () => {
        for (const one of gauges) one.reset()
        try {
          await read()
        } catch {
          for (const one of gauges) {
            one.reset()
            // A gauge without labels would be 0 after a reset.
            one.remove({})
          }
        }
      })
    },
    async text(): Promise<string> {
      await Promise.all(samplers.map((sample) => sample()))
      return registry.metrics()
    },
  }
}

function openAll<D extends MetricDeclarations>(registry: Registry, declarations: D): MetricsOf<D> {
  const opened = Object.entries(declarations).map(([name, declared]) => [
    name,
    declared.open(registry),
  ])
  // Each declared name now has the metric that was opened for it.
  return Object.fromEntries(opened) as MetricsOf<D>
}

type Labels = Readonly<Record<string, string | number | undefined>>
type ReadableMetric = { get(): Promise<{ values: readonly { value: number; labels: Labels }[] }> }

/** Sums the samples of a metric whose labels match. */
export async function totalOf(
  metric: ReadableMetric,
  matches: (labels: Labels) => boolean = () => true,
): Promise<number> {
  const { values } = await metric.get()
  return values.reduce((sum, { labels, value }) => (matches(labels) ? sum + value : sum), 0)
}
