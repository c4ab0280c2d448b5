// The tables of docs/scaling.md.
import { PLACES } from '../measure/bytes-of.ts'
import { digits } from '../report/format.ts'
import type { Result } from '../report/result.ts'
import { markdownTable } from '../report/table.ts'
import { bytesOf, type Posting, STORED } from '../scenarios/bytes.ts'
import { BUSY, COSTS_IN, costAmong, costsOf, dearestRedis, figureOf, predictions, spreadOf } from './costs.ts'
import { ASSUMED, bottleneckOf, needsOf, RATES, resourcesOf, shareOf } from './needs.ts'

const POSTINGS = ['interactive', 'import'] as const

/** The tables by their names in the document. Each throws if a result is missing. */
export const scalingTables = (results: readonly Result[]): Readonly<Record<string, () => string>> => ({
  'scaling-measured': () => measured(results),
  'scaling-assumed': assumed,
  'scaling-predictions': () => predicted(results),
  'scaling-one-interactive': () => oneDeployment(results, 'interactive'),
  'scaling-one-import': () => oneDeployment(results, 'import'),
  'scaling-needs': () => needs(results),
})

function measured(results: readonly Result[]): string {
  const roles = ['api', 'worker', 'redis', 'mongodb'] as const
  const cpu = roles.map((role) => [
    `CPU of ${NAMES[role]}, µs (its rounds)`,
    ...POSTINGS.map((posting) => {
      const [least, most] = spreadOf(results, COSTS_IN[posting], role)
      const { [role]: cost } = costsOf(results, 'stand-in in memory', COSTS_IN[posting])
      return `${digits(cost)} (${digits(least)} to ${digits(most)})`
    }),
    '`callers-64`, `import`',
  ])
  const among = (['api', 'worker'] as const).flatMap((role) =>
    [2, 4, 8].map((count) => [
      `CPU of ${NAMES[role]} among ${count}, µs`,
      ...POSTINGS.map((posting) => digits(costAmong(results, posting, role, count))),
      role === 'api' ? '`replicas`' : '`workers`',
    ]),
  )
  const redis = [
    'CPU of Redis, the dearest, µs',
    ...POSTINGS.map((posting) => digits(dearestRedis(results, posting))),
    '`replicas`, `workers`, `import`',
  ]
  const bytes = PLACES.map((place) => [
    `${place}, bytes`,
    ...POSTINGS.map((posting) => whole(figureOf(results, 'bytes', bytesOf(posting, place)))),
    '`bytes`',
  ])
  const stored = whole(figureOf(results, 'bytes', STORED))
  const waiting = whole(figureOf(results, 'full-queue', 'Redis memory a waiting job'))
  return markdownTable([
    ['of one thread', 'interactive', 'import', 'measured by'],
    ...cpu,
    ...among,
    redis,
    ...bytes,
    ['stored in MongoDB, bytes of BSON', stored, stored, '`bytes`'],
    ['memory of Redis while it waits, bytes', waiting, waiting, '`full-queue`'],
  ])
}

const NAMES = { api: 'the API', worker: 'the worker', redis: 'Redis', mongodb: 'MongoDB (the stand-in in memory)' }

function assumed(): string {
  const rows = Object.values(ASSUMED).map(({ value, unit, why }) => [compact(value), unit, why])
  const busy = [compact(BUSY), 'of a core, a network or a disk is used', 'the predictions below check it for cores']
  return markdownTable([['assumed', 'what', 'why'], busy, ...rows])
}

function predicted(results: readonly Result[]): string {
  const rows = predictions(results).map(({ server, costs, scenario, contender, predicted, measured, bottleneck }) => [
    server,
    `\`${scenario}\`, ${contender}`,
    `\`${costs}\``,
    bottleneck,
    whole(predicted),
    whole(measured),
    `${predicted < measured ? '−' : '+'}${Math.round(Math.abs(predicted / measured - 1) * 100)} %`,
  ])
  const head = ['server', 'predicted is', 'from the costs in', 'first bottleneck', 'predicted/s', 'measured/s', 'error']
  return markdownTable([head, ...rows])
}

function oneDeployment(results: readonly Result[], posting: Posting): string {
  const resources = resourcesOf(results, posting)
  const first = bottleneckOf(resources)
  const rows = resources.map((resource) => {
    const { name, use, limit, unit } = resource
    const bold = (text: string) => (resource === first ? `**${text}**` : text)
    return [
      bold(name),
      `${whole(use)} ${unit}`,
      `${compact(limit)} ${unit}`,
      bold(whole((BUSY * limit) / use)),
      ...RATES.map((rate) => bold(`${digits(shareOf(resource, rate) * 100)} %`)),
    ]
  })
  const head = ['resource', 'of a thread', 'in a second', 'threads/s', ...RATES.map((rate) => `at ${whole(rate)}/s`)]
  return markdownTable([head, ...rows])
}

function needs(results: readonly Result[]): string {
  const columns = POSTINGS.flatMap((posting) =>
    RATES.map((rate) => ({ posting, rate, of: needsOf(results, posting, rate) })),
  )
  const row = (name: string, cell: (column: (typeof columns)[number]) => string) => [name, ...columns.map(cell)]
  const cores = (at: 0 | 1 | 2 | 3) => (column: (typeof columns)[number]) => digits(column.of.cores[at])
  const flowsOf = (posting: Posting) => resourcesOf(results, posting).filter(({ unit }) => unit !== 'µs')
  const flows = flowsOf('interactive')
  return markdownTable([
    row('', ({ posting, rate }) => `${posting}, ${whole(rate)}/s`),
    row('first bottleneck', ({ of }) => of.bottleneck),
    row('cells', ({ of }) => whole(of.cells)),
    row('API processes', ({ of }) => whole(of.apis)),
    row('cores of APIs', cores(0)),
    row('worker processes', ({ of }) => whole(of.workers)),
    row('cores of workers', cores(1)),
    row('Redis servers', ({ of }) => whole(of.redisServers)),
    row('cores of Redis primaries', cores(2)),
    row('Sentinels', ({ of }) => whole(of.sentinels)),
    row('MongoDB servers', ({ of }) => whole(of.mongodbServers)),
    row('cores of MongoDB primaries', cores(3)),
    row('network of callers, Gbit/s', ({ of }) => digits(of.edge / 1e9)),
    ...flows.map(({ name, unit }, at) =>
      row(`${name}, ${unit === 'bits' ? 'Gbit/s' : 'GB/s'}`, ({ posting, rate }) =>
        digits(((flowsOf(posting)[at]?.use ?? 0) * rate) / 1e9),
      ),
    ),
    row('stored a day on one member of each cell, TB', ({ of }) => digits(of.storedPerDay / 1e12)),
    row('the disks are full after, days', ({ of }) => digits(of.fullAfterDays)),
  ])
}

const whole = (value: number) => Math.round(value).toLocaleString('en')

/** A figure in words that a reader can compare: 10e9 is `10,000,000,000`. */
const compact = (value: number) => value.toLocaleString('en', { maximumFractionDigits: 2 })
