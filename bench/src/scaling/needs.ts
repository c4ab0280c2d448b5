// What a rate needs, by arithmetic from the costs of a thread and from assumptions.
import type { Result } from '../report/result.ts'
import { bytesOf, type Posting, STORED } from '../scenarios/bytes.ts'
import { BUSY, costsOf, figureOf, ratePerCore } from './costs.ts'

/** The rates that docs/scaling.md is about, in threads a second. */
export const RATES = [10_000, 100_000, 1_000_000] as const

/** A figure that was not measured here, and where it comes from. */
export interface Assumption {
  value: number
  unit: string
  why: string
}

/** All assumptions, `BUSY` aside. */
export const ASSUMED = {
  redisUs: {
    value: 0.81e6 / 6_276,
    unit: "µs of Redis's core for an interactive thread",
    why: "6,276 threads/s at 81 % of Redis's core, by issue 21, without a result file. `callers-64` measured less; the dearer counts",
  },
  mongodbCores: { value: 16, unit: 'cores of a MongoDB server', why: 'a common size' },
  members: { value: 3, unit: 'members of a replica set', why: 'the least that survives the loss of one' },
  writes: {
    value: 3,
    unit: 'times that MongoDB writes a stored byte',
    why: 'data file, oplog and journal, without compression',
  },
  link: { value: 10e9, unit: "bits/s of a server's network, each way", why: 'a common size' },
  diskRate: { value: 500e6, unit: 'bytes/s that a disk writes steadily', why: 'a common size' },
  diskSize: { value: 8e12, unit: 'bytes of a MongoDB disk', why: 'a common size' },
} satisfies Record<string, Assumption>

/** What limits one deployment (one Redis primary, one replica set), and how much of it a thread uses. */
export interface Resource {
  name: string
  /** Of one thread. */
  use: number
  /** A second, and `BUSY` of it counts. */
  limit: number
  unit: string
}

/** The resources of which a deployment has one. */
export function resourcesOf(results: readonly Result[], posting: Posting): Resource[] {
  const costs = costsOf(results, 'stand-in in memory', posting === 'interactive' ? 'callers-64' : 'import')
  const bytes = (place: Parameters<typeof bytesOf>[1]) => figureOf(results, 'bytes', bytesOf(posting, place))
  const stored = figureOf(results, 'bytes', STORED)
  const { redisUs, mongodbCores, members, writes, link, diskRate } = ASSUMED
  const bits = (of: number) => of * 8
  return [
    {
      name: "Redis's core",
      use: posting === 'interactive' ? Math.max(costs.redis, redisUs.value) : costs.redis,
      limit: 1e6,
      unit: 'µs',
    },
    { name: "the MongoDB primary's cores", use: costs.mongodb, limit: mongodbCores.value * 1e6, unit: 'µs' },
    // A replica gets what Redis appends to its file.
    {
      name: "Redis's network, out",
      use: bits(bytes('from Redis') + bytes('Redis file')),
      limit: link.value,
      unit: 'bits',
    },
    { name: "Redis's network, in", use: bits(bytes('to Redis')), limit: link.value, unit: 'bits' },
    { name: "Redis's disk", use: bytes('Redis file'), limit: diskRate.value, unit: 'bytes' },
    { name: "the MongoDB primary's network, in", use: bits(bytes('to MongoDB')), limit: link.value, unit: 'bits' },
    {
      name: "the MongoDB primary's network, out",
      use: bits(bytes('from MongoDB') + (members.value - 1) * stored),
      limit: link.value,
      unit: 'bits',
    },
    { name: "a MongoDB member's disk", use: stored * writes.value, limit: diskRate.value, unit: 'bytes' },
  ]
}

/** The share of what counts of a resource that a rate uses; above 1 there is too little. */
export const shareOf = ({ use, limit }: Resource, rate: number) => (use * rate) / (BUSY * limit)

/** The resource of which a rate uses the largest share. */
export function bottleneckOf(resources: readonly Resource[]): Resource {
  return resources.reduce((first, next) => (shareOf(next, 1) > shareOf(first, 1) ? next : first))
}

/** What a rate needs in all. */
export interface Needs {
  cells: number
  apis: number
  workers: number
  /** Of APIs, workers, the Redis primaries and the MongoDB primaries, in this order. */
  cores: readonly [number, number, number, number]
  redisServers: number
  mongodbServers: number
  /** Bits/s between callers and APIs, both directions. */
  edge: number
  /** Bytes that MongoDB stores a day, on one member of each cell. */
  storedPerDay: number
  /** The resource of a cell that is used up first. */
  bottleneck: string
  /** Days until the disks of all cells are full. */
  fullAfterDays: number
}

/** What a rate needs. Each cell has a replica of Redis. */
export function needsOf(results: readonly Result[], posting: Posting, rate: number): Needs {
  const costs = costsOf(results, 'stand-in in memory', posting === 'interactive' ? 'callers-64' : 'import')
  const resources = resourcesOf(results, posting)
  const first = bottleneckOf(resources)
  const cells = Math.ceil(shareOf(first, rate))
  const coresOf = (us: number) => rate / ratePerCore(us)
  const redis = resources[0]?.use ?? 0
  const perCell = (of: number) => Math.ceil(of / cells) * cells
  const edge = (['callers to API', 'API to callers'] as const).reduce(
    (sum, place) => sum + figureOf(results, 'bytes', bytesOf(posting, place)) * 8 * rate,
    0,
  )
  const storedPerDay = figureOf(results, 'bytes', STORED) * rate * 86_400
  return {
    cells,
    apis: perCell(coresOf(costs.api)),
    workers: perCell(coresOf(costs.worker)),
    cores: [coresOf(costs.api), coresOf(costs.worker), coresOf(redis), coresOf(costs.mongodb)],
    redisServers: 2 * cells,
    mongodbServers: ASSUMED.members.value * cells,
    edge,
    storedPerDay,
    bottleneck: first.name,
    fullAfterDays: (ASSUMED.diskSize.value * cells) / storedPerDay,
  }
}
