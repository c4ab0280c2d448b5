// What all processes counted, minute by minute, for the last 25 hours.
import type { HistoryPoint, QueuedJobs } from '@sluice/contract'
import type { QueueKeys } from '@sluice/queue'
import type { Redis } from 'ioredis'
import type { CountName } from './heartbeats.ts'

type Quantiles = NonNullable<HistoryPoint['queueTime']>
type Counts = Readonly<Record<string, number>>

const MINUTE_MS = 60_000
/** A graph has at most some hundred points. */
const SPANS = { hour: { minutes: 60, perPoint: 1 }, day: { minutes: 1_440, perPoint: 15 } } as const
/** Hashes that are read at a time, in a millisecond or two of Redis's time. */
const READ_AT_ONCE = 100

/**
 * Makes a function that returns the last hour or day, oldest first, or the last N minutes as one point. It caches
 * minutes that are over, because they never change.
 */
export function createReadHistory(redis: Redis, { base }: QueueKeys) {
  const over = new Map<number, Counts>()

  async function read(minute: number): Promise<[minute: number, counts: Counts]> {
    const counts = Object.entries(await redis.hgetall(`${base}minute:${minute}`))
    return [minute, Object.fromEntries(counts.map(([name, count]) => [name, Number(count)]))]
  }

  return async (span: keyof typeof SPANS | number): Promise<HistoryPoint[]> => {
    const { minutes: count, perPoint } = typeof span === 'number' ? { minutes: span, perPoint: span } : SPANS[span]
    const [seconds] = await redis.time()
    const now = Math.floor(Number(seconds) / 60)
    const begin = now - count + 1
    // Points begin at multiples of `perPoint`, so that a graph that is drawn again has the same points.
    const first = typeof span === 'number' ? begin : Math.ceil(begin / perPoint) * perPoint
    const minutes = Array.from({ length: now - first + 1 }, (_, at) => first + at)
    const found = new Map(over)
    const missing = minutes.filter((minute) => !over.has(minute))
    for (let at = 0; at < missing.length; at += READ_AT_ONCE) {
      const some = await Promise.all(missing.slice(at, at + READ_AT_ONCE).map(read))
      for (const [minute, counts] of some) found.set(minute, counts)
    }
    const counted = minutes.map((minute) => found.get(minute) ?? {})
    for (const [minute, counts] of found) if (minute < now) over.set(minute, counts)
    for (const minute of over.keys()) if (minute < now - SPANS.day.minutes) over.delete(minute)
    return Array.from({ length: Math.ceil(counted.length / perPoint) }, (_, point) =>
      pointOf((first + point * perPoint) * MINUTE_MS, counted.slice(point * perPoint, (point + 1) * perPoint)),
    )
  }
}

const TENANTS = 10

function pointOf(at: number, minutes: readonly Counts[]): HistoryPoint {
  const sum = (name: CountName) => sumOf(name)
  const sumOf = (name: string) => minutes.reduce((total, counts) => total + (counts[name] ?? 0), 0)
  const most = (name: string) => Math.max(...minutes.map((counts) => counts[name] ?? 0))
  const byLane = (name: string) => ({ interactive: most(`${name}:interactive`), bulk: most(`${name}:bulk`) })
  const names = new Set(minutes.flatMap((counts) => Object.keys(counts)))
  /** Sums the fields whose names begin with `prefix`, by the rest of their names. */
  const sums = (prefix: string) =>
    [...names]
      .filter((name) => name.startsWith(prefix))
      .map((name) => [name.slice(prefix.length), sumOf(name)] as const)
  const queueTime = quantilesOf(sums('queue:'))
  const storeTime = quantilesOf(sums('store:'))
  return {
    at: new Date(at).toISOString(),
    minutes: minutes.length,
    accepted: sum('accepted'),
    stored: { created: sum('stored:created'), updated: sum('stored:updated'), unchanged: sum('stored:unchanged') },
    failed: sum('failed'),
    refused: sum('refused'),
    refusedByTenant: Object.fromEntries(
      sums('refused:')
        .sort(([, one], [, other]) => other - one)
        .slice(0, TENANTS),
    ),
    ...(queueTime && { queueTime }),
    ...(storeTime && { storeTime }),
    waiting: byLane('waiting'),
    oldestSeconds: byLane('oldest'),
  }
}

/** Estimates quantiles from the counts below each bound of a histogram, as Prometheus does. */
function quantilesOf(counts: readonly (readonly [bound: string, count: number])[]): Quantiles | undefined {
  const buckets = counts.map(([bound, count]) => ({ bound: bound === '+Inf' ? Infinity : Number(bound), count }))
  buckets.sort((one, other) => one.bound - other.bound)
  const all = buckets.at(-1)?.count ?? 0
  if (all === 0) return undefined
  function quantile(share: number): number {
    const at = buckets.findIndex(({ count }) => count >= share * all)
    const { bound: low, count: below } = buckets[at - 1] ?? { bound: 0, count: 0 }
    const { bound: high, count } = buckets[at] ?? { bound: Infinity, count: all }
    if (high === Infinity) return low
    return low + ((high - low) * (share * all - below)) / (count - below)
  }
  return { p50: quantile(0.5), p99: quantile(0.99) }
}

/** Returns the peaks of a heartbeat: see `HistoryPoint`. */
export function peaksOf(queued: readonly QueuedJobs[]): Counts {
  const waiting = queued.filter(({ state }) => state === 'waiting')
  return Object.fromEntries(
    waiting.flatMap(({ lane, threads, oldestMs }) => [
      [`waiting:${lane}`, threads],
      [`oldest:${lane}`, oldestMs / 1000],
    ]),
  )
}
