// What a rate needs, by arithmetic from the costs of a thread and from assumptions.
import type { Result } from '../report/result.ts'
import { bytesOf, type Posting, STORED } from '../scenarios/bytes.ts'
import { BUSY, COSTS_IN, costAmong, costsOf, dearestRedis, figureOf, ratePerCore } from './costs.ts'

/** The rates that docs/scaling.md is about, in threads a second. */
export const RATES = [10_000, 100_000, 1_000_000] as const

/** A figure that was not measured here. */
export interface Assumption {
  value: number
  /** Its unit and, unless it is a common size, why we assume it. */
  what: string
}

/** All assumptions, `BUSY` aside. */
export const ASSUMED = {
  mongodbCores: { value: 16, what: 'cores of a MongoDB server' },
  members: { value: 3, what: 'members of a replica set' },
  lost: { value: 1, what: 'process of each kind that a cell may lose' },
  sentinels: { value: 3, what: 'Sentinels of a cell' },
  indexBytes: {
    value: 90,
    what: 'bytes of a document in the index of `_id` (`LIST_SOURCES` adds as much for a source)',
  },
  writes: { value: 3, what: 'times that MongoDB writes a stored byte (without compression)' },
  link: { value: 10e9, what: "bits/s of a server's network, each way" },
  diskRate: { value: 500e6, what: 'bytes/s that a disk writes steadily' },
  diskSize: { value: 8e12, what: 'bytes of a MongoDB disk' },
} satisfies Record<string, Assumption>

/**
 * What limits one deployment (one Redis primary, one replica set), and how much of it a thread
 * uses.
 */
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
  const { mongodb } = costsOf(results, 'emulator in memory', COSTS_IN[posting])
  const bytes = (place: Parameters<typeof bytesOf>[1]) =>
    figureOf(results, 'bytes', bytesOf(posting, place))
  const stored = storedBytes(results)
  const { mongodbCores, members, writes, link, diskRate } = ASSUMED
  const bits = (of: number) => of * 8
  return [
    { name: "Redis's core", use: dearestRedis(results, posting), limit: 1e6, unit: 'µs' },
    {
      name: "the MongoDB primary's cores",
      use: mongodb,
      limit: mongodbCores.value * 1e6,
      unit: 'µs',
    },
    // A replica gets what Redis appends to its file.
    {
      name: "Redis's network, out",
      use: bits(bytes('from Redis') + bytes('Redis file')),
      limit: link.value,
      unit: 'bits',
    },
    { name: "Redis's network, in", use: bits(bytes('to Redis')), limit: link.value, unit: 'bits' },
    { name: "Redis's disk", use: bytes('Redis file'), limit: diskRate.value, unit: 'bytes' },
    {
      name: "the MongoDB primary's network, in",
      use: bits(bytes('to MongoDB')),
      limit: link.value,
      unit: 'bits',
    },
    {
      name: "the MongoDB primary's network, out",
      use: bits(bytes('from MongoDB') + (members.value - 1) * stored),
      limit: link.value,
      unit: 'bits',
    },
    {
      name: "a MongoDB member's disk",
      use: stored * writes.value,
      limit: diskRate.value,
      unit: 'bytes',
    },
  ]
}

/**
 * Bytes that a thread takes on a member of a replica set: its documents, and their places in the
 * index.
 */
function storedBytes(results: readonly Result[]): number {
  return figureOf(results, 'bytes', STORED) + ASSUMED.indexBytes.value * DOCUMENTS
}

/** The documents of a thread: a source, and on average seven quotes. */
const DOCUMENTS = 8

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
  sentinels: number
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
  const resources = resourcesOf(results, posting)
  const first = bottleneckOf(resources)
  const cells = Math.ceil(shareOf(first, rate))
  const coresOf = (us: number) => rate / ratePerCore(us)
  const api = processesOf(results, posting, 'api', rate / cells)
  const worker = processesOf(results, posting, 'worker', rate / cells)
  const [redis = 0, mongodb = 0] = resources.map(({ use }) => use)
  const edge = (['callers to API', 'API to callers'] as const).reduce(
    (sum, place) => sum + figureOf(results, 'bytes', bytesOf(posting, place)) * 8 * rate,
    0,
  )
  const storedPerDay = storedBytes(results) * rate * 86_400
  return {
    cells,
    apis: api.count * cells,
    workers: worker.count * cells,
    cores: [coresOf(api.us), coresOf(worker.us), coresOf(redis), coresOf(mongodb)],
    redisServers: 2 * cells,
    sentinels: ASSUMED.sentinels.value * cells,
    mongodbServers: ASSUMED.members.value * cells,
    edge,
    storedPerDay,
    bottleneck: first.name,
    fullAfterDays: (ASSUMED.diskSize.value * cells) / storedPerDay,
  }
}

/**
 * The processes of one kind that a cell needs for a rate, so that those that are left after a loss
 * carry it, and what a thread costs in each.
 */
function processesOf(
  results: readonly Result[],
  posting: Posting,
  role: 'api' | 'worker',
  rate: number,
) {
  for (let count = 1 + ASSUMED.lost.value; ; count++) {
    const us = costAmong(results, posting, role, count)
    if (rate <= (count - ASSUMED.lost.value) * ratePerCore(us)) return { count, us }
  }
}
