// Reads what all processes counted, minute by minute, for the last 25 hours.
import { type Bins, quantilesOf, type Timed } from '@sluice/boot/durations'
import { type HistoryPoint, type QueuedJobs, spanCounts } from '@sluice/contract'
import { readRedisTime } from '@sluice/process/redis'
import { LANES, type QueueKeys } from '@sluice/queue'
import type { Redis } from 'ioredis'

type Counts = Readonly<Record<string, number>>
type Minute = { counts: Counts; durations: Bins }

const MINUTE_MS = 60_000
/**
 * The spans that a graph can show, by the names that people see. A graph has at most some hundred
 * points.
 */
export const SPANS = {
  '15 min': { minutes: 15, perPoint: 1 },
  '1 h': { minutes: 60, perPoint: 1 },
  '6 h': { minutes: 360, perPoint: 5 },
  '24 h': { minutes: 1_440, perPoint: 15 },
} as const
export type Span = keyof typeof SPANS
/** This number of hashes is read at a time, in a millisecond or two of Redis's time. */
const READ_AT_ONCE = 100

/**
 * A point of a graph: what was counted in the time that begins at `at`, or null if no process lived
 * in it.
 */
export type CountedSpan = { at: string; point: HistoryPoint | null }

/**
 * Makes a function that returns the points of a span, oldest first, or the last N minutes as one
 * point. A point is null if no process lived in its time. The function caches past minutes, because
 * they never change.
 */
export function createReadHistory(redis: Redis, { base }: QueueKeys) {
  const over = new Map<number, Minute>()

  async function read(at: number, now: number): Promise<Minute> {
    const cached = over.get(at)
    if (cached !== undefined) return cached
    const key = `${base}minute:${at}`
    const [texts, durations] = await Promise.all([
      redis.hgetall(key),
      redis.get(`${key}:durations`),
    ])
    const counts = Object.entries(texts).map(([name, count]) => [name, Number(count)])
    const minute = { counts: Object.fromEntries(counts), durations: JSON.parse(durations ?? '{}') }
    if (at < now) over.set(at, minute)
    return minute
  }

  return async (span: Span | number): Promise<CountedSpan[]> => {
    const { minutes: count, perPoint } =
      typeof span === 'number' ? { minutes: span, perPoint: span } : SPANS[span]
    const now = Math.floor((await readRedisTime(redis)) / MINUTE_MS)
    const begin = now - count + 1
    // Points begin at multiples of `perPoint`, so that a graph has the same points when it is drawn
    // again.
    const first = typeof span === 'number' ? begin : Math.ceil(begin / perPoint) * perPoint
    const minutes = Array.from({ length: now - first + 1 }, (_, at) => first + at)
    const counted: Minute[] = []
    for (let at = 0; at < minutes.length; at += READ_AT_ONCE)
      counted.push(
        ...(await Promise.all(
          minutes.slice(at, at + READ_AT_ONCE).map((minute) => read(minute, now)),
        )),
      )
    for (const minute of over.keys()) if (minute < now - SPANS['24 h'].minutes) over.delete(minute)
    return Array.from({ length: Math.ceil(counted.length / perPoint) }, (_, index) => {
      const at = new Date((first + index * perPoint) * MINUTE_MS).toISOString()
      const ofPoint = counted.slice(index * perPoint, (index + 1) * perPoint)
      const hasLived =
        typeof span === 'number' || ofPoint.some(({ counts }) => counts.covered !== undefined)
      return { at, point: hasLived ? pointOf(at, ofPoint) : null }
    })
  }
}

const TENANTS = 10

function pointOf(at: string, minutes: readonly Minute[]): HistoryPoint {
  const sumOf = (name: string) =>
    minutes.reduce((total, { counts }) => total + (counts[name] ?? 0), 0)
  const most = (name: string) => Math.max(...minutes.map(({ counts }) => counts[name] ?? 0))
  const byLane = (name: string) => ({
    interactive: most(`${name}:interactive`),
    bulk: most(`${name}:bulk`),
  })
  const names = new Set(minutes.flatMap(({ counts }) => Object.keys(counts)))
  const refusals = [...names]
    .filter((name) => name.startsWith('refused:'))
    .map((name) => [name.slice('refused:'.length), sumOf(name)] as const)
    .sort(([, one], [, other]) => other - one)
  const binsOf = (timed: Timed) => minutes.map(({ durations }) => durations[timed] ?? [])
  const timeOf = (...timed: Timed[]) =>
    quantilesOf(timed.flatMap(binsOf), Math.max(...timed.map((one) => most(`longest:${one}`))))
  const queueTime = timeOf('inQueue:interactive', 'inQueue:bulk')
  const storeTime = timeOf('inStore:interactive', 'inStore:bulk')
  const totals = LANES.flatMap((lane) => {
    const [quantile, inQueue, inStore] = [
      timeOf(lane),
      timeOf(`inQueue:${lane}`),
      timeOf(`inStore:${lane}`),
    ]
    if (quantile === undefined) return []
    const parts = {
      ...(inQueue && { inQueue: inQueue(0.5) }),
      ...(inStore && { inStore: inStore(0.5) }),
    }
    return [[lane, { p50: quantile(0.5), p95: quantile(0.95), p99: quantile(0.99), ...parts }]]
  })
  return {
    at,
    minutes: minutes.length,
    coveredSeconds: sumOf('covered') / 1000,
    ...spanCounts(sumOf),
    refusedByTenant: Object.fromEntries(refusals.slice(0, TENANTS)),
    totalTime: Object.fromEntries(totals),
    ...(queueTime && { queueTime: { p50: queueTime(0.5), p99: queueTime(0.99) } }),
    ...(storeTime && { storeTime: { p50: storeTime(0.5), p99: storeTime(0.99) } }),
    storeAwaySeconds: most('away'),
    waiting: byLane('waiting'),
    oldestSeconds: byLane('oldest'),
  }
}

/** Returns the peaks that a heartbeat reports: see `HistoryPoint`. */
export function peaksOf(queued: readonly QueuedJobs[]): Counts {
  const waiting = queued.filter(({ state }) => state === 'waiting')
  return Object.fromEntries(
    waiting.flatMap(({ lane, threads, oldestMs }) => [
      [`waiting:${lane}`, threads],
      [`oldest:${lane}`, oldestMs / 1000],
    ]),
  )
}
