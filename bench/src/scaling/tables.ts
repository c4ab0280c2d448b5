// The tables of docs/scaling.md.
import { PLACES } from '../measure/bytes-of.ts'
import { digits } from '../report/format.ts'
import type { Result } from '../report/result.ts'
import { markdownTable } from '../report/table.ts'
import { bytesOf, STORED } from '../scenarios/bytes.ts'
import {
  BUSY,
  COSTS_IN,
  costAmong,
  costsOf,
  dearestRedis,
  figureOf,
  type Prediction,
  predictions,
  spreadOf,
} from './costs.ts'
import { ASSUMED, bottleneckOf, needsOf, RATES, resourcesOf } from './needs.ts'

const POSTINGS = ['interactive', 'import'] as const

/** The tables by their names in the document. Each throws if a result is missing. */
export const scalingTables = (
  results: readonly Result[],
): Readonly<Record<string, () => string>> => ({
  'scaling-measured': () => measured(results),
  'scaling-assumed': assumed,
  'scaling-predictions': () => predicted(results),
  'scaling-one': () => oneDeployment(results),
  'scaling-needs': () => needs(results),
})

function measured(results: readonly Result[]): string {
  const roles = ['api', 'worker', 'redis', 'mongodb'] as const
  const cpu = roles.map((role) => [
    `CPU of ${NAMES[role]}, µs (rounds)`,
    ...POSTINGS.map((posting) => {
      const [least, most] = spreadOf(results, COSTS_IN[posting], role)
      const { [role]: cost } = costsOf(results, 'emulator in memory', COSTS_IN[posting])
      return `${digits(cost)} (${digits(least)}–${digits(most)})`
    }),
  ])
  const among = (['api', 'worker'] as const).map((role) => [
    `CPU of ${NAMES[role]} among 2, 4, 8, µs`,
    ...POSTINGS.map((posting) =>
      [2, 4, 8].map((count) => digits(costAmong(results, posting, role, count))).join(', '),
    ),
  ])
  const redis = [
    'CPU of Redis, the most, µs',
    ...POSTINGS.map((posting) => digits(dearestRedis(results, posting))),
  ]
  const bytes = PLACES.map((place) => [
    `${place}, bytes`,
    ...POSTINGS.map((posting) => whole(figureOf(results, 'bytes', bytesOf(posting, place)))),
  ])
  const stored = whole(figureOf(results, 'bytes', STORED))
  const waiting = whole(figureOf(results, 'full-queue', 'Redis memory a waiting job'))
  return markdownTable([
    ['of one thread', 'interactive', 'import'],
    ...cpu,
    ...among,
    redis,
    ...bytes,
    ['stored in MongoDB, bytes', stored, stored],
    ['in Redis while it waits, bytes', waiting, waiting],
  ])
}

const NAMES = {
  api: 'the API',
  worker: 'the worker',
  redis: 'Redis',
  mongodb: 'MongoDB (emulator in memory)',
}

function assumed(): string {
  const rows = Object.values(ASSUMED).map(({ value, what }) => [compact(value), what])
  const busy = [compact(BUSY), 'of a core, a network or a disk is used']
  return markdownTable([['assumed', 'what'], busy, ...rows])
}

/** A column for each server, with its bottleneck in the head. */
function predicted(results: readonly Result[]): string {
  const byServer = [...Map.groupBy(predictions(results), ({ server }) => server)]
  const heads = byServer.map(([server, all]) => {
    const bottlenecks = new Set(all.map(({ bottleneck }) => bottleneck))
    return `${server} (${[...bottlenecks].join(', ')})`
  })
  const rows = (byServer[0]?.[1] ?? []).map(({ scenario, contender }, at) => [
    `${scenario}, ${contender}`,
    ...byServer.map(([, all]) => errorOf(all[at])),
  ])
  return markdownTable([['predicted, measured/s, error', ...heads], ...rows])
}

function errorOf(prediction: Prediction | undefined): string {
  if (prediction === undefined) return '–'
  const { predicted, measured } = prediction
  const percent = Math.round(Math.abs(predicted / measured - 1) * 100)
  return `${whole(predicted)}, ${whole(measured)}, ${predicted < measured ? '−' : '+'}${percent}%`
}

/** What one deployment carries. The bottleneck of each kind of thread is bold. */
function oneDeployment(results: readonly Result[]): string {
  const all = POSTINGS.map((posting) => resourcesOf(results, posting))
  const cells = all.map((resources) => {
    const first = bottleneckOf(resources)
    return resources.map((resource) => {
      const carried = whole((BUSY * resource.limit) / resource.use)
      return [whole(resource.use), resource === first ? `**${carried}**` : carried]
    })
  })
  const rows = (all[0] ?? []).map(({ name, limit, unit }, at) => [
    `${name}, ${unit}`,
    compact(limit),
    ...cells.flatMap((column) => column[at] ?? []),
  ])
  return markdownTable([
    ['resource', 'limit/s', ...POSTINGS.flatMap((posting) => [posting, 'threads/s'])],
    ...rows,
  ])
}

function needs(results: readonly Result[]): string {
  const columns = POSTINGS.flatMap((posting) =>
    RATES.map((rate) => ({ posting, rate, of: needsOf(results, posting, rate) })),
  )
  const row = (name: string, cell: (column: (typeof columns)[number]) => string) => [
    name,
    ...columns.map(cell),
  ]
  return markdownTable([
    row('', ({ posting, rate }) => `${posting}, ${whole(rate)}/s`),
    row('bottleneck', ({ of }) => of.bottleneck),
    row('cells', ({ of }) => whole(of.cells)),
    row('API processes', ({ of }) => whole(of.apis)),
    row('worker processes', ({ of }) => whole(of.workers)),
    row('cores: API/worker/Redis/MongoDB', ({ of }) => of.cores.map(digits).join('/')),
    row('network of callers, Gbit/s', ({ of }) => digits(of.edge / 1e9)),
    row('stored a day, TB', ({ of }) => digits(of.storedPerDay / 1e12)),
    row('disks full after, days', ({ of }) => digits(of.fullAfterDays)),
  ])
}

const whole = (value: number) => Math.round(value).toLocaleString('en')

/** A figure in words that a reader can compare: 10e9 is `10,000,000,000`. */
const compact = (value: number) => value.toLocaleString('en', { maximumFractionDigits: 2 })
