// Reads a queue for people: its present state (its jobs, the tenants with the most threads, the
// processes, and Redis), and what all processes counted, minute by minute, for the last 25 hours.
import { type Bins, quantilesOf, type Timed } from '@sluice/boot/durations'
import {
  type HistoryPoint,
  type Operation,
  QUEUED_STATES,
  type QueuedJobs,
  type Retention,
  type SeenProcess,
  type Status,
  spanCounts,
} from '@sluice/contract'
import {
  asList,
  createReadRefusal,
  infoField,
  openScript,
  readRedisTime,
  redisFaults,
  unwrittenOf,
} from '@sluice/process/redis'
import { LANES, type QueueKeys } from '@sluice/queue'
import type { Redis } from 'ioredis'
import { readPause } from '../failed/operations.ts'
import { alive, type Facts, NEARLY_FULL } from './finding.ts'

/** The most tenants that are named, those with the highest number first. */
const TENANTS = 10
/**
 * A step reads this number of tenants, and there are at most STEPS: 20,000 tenants in about 20 ms.
 */
const STEP = 500
const STEPS = 40
/** After Redis accepts writes again, all processes have sent a heartbeat within this time. */
const RESUME_MS = 3_000

/** Makes a function that reads the overview, in a few milliseconds. */
export function createReadOverview(redis: Redis, keys: QueueKeys): () => Promise<Facts> {
  const { base } = keys
  const readState = createReadState(redis, keys)
  const readRefusal = createReadRefusal(redis, base)
  const scanTenants = openScript(
    redis,
    new URL('#tenants', import.meta.resolve('@sluice/queue/load/load.lua')),
  )

  async function readTenants(): Promise<Status['tenants']> {
    const found = new Map<string, number>()
    let cursor = '0'
    for (let step = 0; step < STEPS && (step === 0 || cursor !== '0'); step++) {
      const [next, tenants] = asList(await scanTenants(base, cursor, STEP))
      for (const [tenant, threads] of asList(tenants).map(asList))
        found.set(String(tenant), Number(threads))
      cursor = String(next)
    }
    const loads = Array.from(found, ([tenant, threads]) => ({ tenant, threads }))
    return loads.sort((one, other) => other.threads - one.threads).slice(0, TENANTS)
  }

  async function readProcesses(now: number): Promise<SeenProcess[]> {
    const seen = await redis.zrange(`${base}processes`, '0', '-1', 'WITHSCORES')
    const descriptions = await redis.hgetall(`${base}processes:about`)
    const processes = Object.entries(descriptions).flatMap(
      ([id, description]): SeenProcess | [] => {
        const at = seen.indexOf(id)
        // A heartbeat may arrive after `now`. Or it came before a failover, from a Redis whose
        // clock was ahead.
        const seenMsAgo = Math.max(now - Number(seen[at + 1]), 0)
        const { beat, ...process } = JSON.parse(description)
        // A process does not know Redis's time before its second heartbeat.
        if (beat === 1) process.startedAt = new Date(Number(seen[at + 1])).toISOString()
        return at === -1 ? [] : { ...process, id, seenMsAgo }
      },
    )
    return processes.sort(
      (one, other) =>
        one.kind.localeCompare(other.kind) || one.startedAt.localeCompare(other.startedAt),
    )
  }

  /**
   * Reads since when MongoDB has been unavailable. The living workers report it or, if none lives,
   * the last ones did.
   */
  async function readUnavailable(
    processes: readonly SeenProcess[],
    now: number,
  ): Promise<Pick<Status, 'storeAwayMs' | 'storeAway'>> {
    const [since, reason] = await redis.hmget(`${base}store-unavailable`, 'since', 'reason')
    const workers = alive(processes, 'worker')
    const reported = workers.flatMap(({ storeAwayMs, seenMsAgo }) =>
      storeAwayMs === undefined ? [] : storeAwayMs + seenMsAgo,
    )
    if (!since || (reported.length === 0 && workers.length > 0)) return {}
    const storeAway = { since: new Date(Number(since)).toISOString(), reason: reason ?? '' }
    return { storeAwayMs: Math.max(now - Number(since), 0, ...reported), storeAway }
  }

  /** Reads what processes noted for the verdict. */
  async function readNotes() {
    const names = ['other-store', 'lost', 'retention', 'other-redis', 'other-queue']
    const [otherStore, redisLoss, operation, sameName, otherQueue] = await redis.mget(
      names.map((name) => base + name),
    )
    const retention = operation && (await redis.hget(`${base}operation:${operation}`, 'operation'))
    const other =
      'A queue of the same name in another Redis feeds this MongoDB: correct REDIS_URL or QUEUE'
    const notes: Pick<Status, 'otherStore' | 'redisLoss' | 'retention'> = {
      ...(otherStore && { otherStore: JSON.parse(otherStore) }),
      ...(redisLoss && { redisLoss: JSON.parse(redisLoss) }),
      ...(retention && { retention: retentionOf(JSON.parse(retention)) }),
    }
    return { notes, others: [...(sameName ? [other] : []), ...(otherQueue ? [otherQueue] : [])] }
  }

  /**
   * While Redis refuses writes, and for `RESUME_MS` after that, no heartbeat arrives. So the
   * processes that lived when it began count as alive.
   */
  let refusedAt = Number.NEGATIVE_INFINITY
  function agedTo(at: number, processes: readonly SeenProcess[]): SeenProcess[] {
    const silentMs =
      at - refusedAt < RESUME_MS ? Math.min(...processes.map(({ seenMsAgo }) => seenMsAgo)) : 0
    return processes.map((process) => ({ ...process, seenMsAgo: process.seenMsAgo - silentMs }))
  }

  return async () => {
    const at = Math.floor(await readRedisTime(redis))
    const reads = [
      readState(),
      readTenants(),
      readProcesses(at),
      redis.info(),
      readRefusal(),
      readNotes(),
    ] as const
    const [{ clockBehindMs, ...state }, tenants, seen, info, refusal, { notes, others }] =
      await Promise.all(reads)
    if (refusal.writes || refusal.commands) refusedAt = at
    const processes = agedTo(at, seen)
    const numberOf = (name: string) => Number(infoField(info, name) ?? 0)
    return {
      at: new Date(at).toISOString(),
      ...state,
      tenants,
      processes,
      redis: {
        ...{ usedBytes: numberOf('used_memory'), maxBytes: numberOf('maxmemory'), clockBehindMs },
        replicas: numberOf('connected_slaves'),
        faults: [
          ...Object.values(redisFaults(info, 0)).flat(),
          ...writeFaults(info, refusal.writes),
          ...(refusal.commands ? [`Redis refuses commands: ${refusal.commands}`] : []),
          ...connectionFaults(info),
          ...others,
        ],
      },
      ...(await readUnavailable(processes, at)),
      ...notes,
    }
  }
}

const retentionOf = ({ createdAt: at, total: due, done: deleted }: Operation): Retention => {
  return { at, due, deleted }
}

/** Says why Redis refuses writes, or that it could not write to its disk, and what to do. */
function writeFaults(info: string, refusal: string): string[] {
  const unwritten = unwrittenOf(info)
  if (refusal === '' && unwritten === undefined) return []
  // Only the first sentence of Redis's text, which is long.
  const what =
    refusal === ''
      ? 'Redis could not write to its disk'
      : `Redis refuses writes: ${refusal.split('. ')[0]}`
  if (unwritten === undefined) return [what]
  return [
    `${what} (${unwritten.status}). Free space on its disk, then \`redis-cli ${unwritten.command}\``,
  ]
}

/** Says that Redis will soon refuse connections, so that no process can start or reconnect. */
function connectionFaults(info: string): string[] {
  const used = Number(infoField(info, 'connected_clients') ?? 0)
  const most = Number(infoField(info, 'maxclients') ?? Infinity)
  const fix = `\`redis-cli config set maxclients ${most * 2}\``
  return used < most * NEARLY_FULL
    ? []
    : [`Redis has ${used} of at most ${most} connections. Close those of others, or ${fix}`]
}

/** Makes a function that reads how much a tenant has in the load of a queue. */
export function createReadTenant(redis: Redis, { base }: QueueKeys) {
  const read = openScript(
    redis,
    new URL('#tenant', import.meta.resolve('@sluice/queue/load/load.lua')),
  )
  return async (tenant: string) => {
    const [threads = 0, bytes = 0, interactive = 0] = asList(await read(base, tenant)).map(Number)
    return { threads, bytes, interactive, bulk: threads - interactive }
  }
}

/** The state of a queue and of its load, and how far the clock that stamps jobs is behind. */
export type QueueState = Required<Pick<Status, 'queued' | 'paused' | 'load'>> &
  Pick<Status, 'lastFailureMs'> & { clockBehindMs: number }

/**
 * Makes a function that reads the state of a queue, in about 0.1 ms of Redis's time for each lane
 * (at most 2 ms). If a lane has more than 300 active or delayed jobs, their threads are estimated
 * from 300 of them, and the oldest job may be missed. A job that waits for its next attempt counts
 * with its age only once fewer than 300 jobs of its lane are in front of it.
 */
export function createReadState(
  redis: Redis,
  { base, jobs }: QueueKeys,
): () => Promise<QueueState> {
  const read = openScript(redis, new URL('./queue-state.lua', import.meta.url))
  return async () => {
    const state: QueueState = {
      queued: [],
      paused: {},
      load: { threads: 0, bytes: 0 },
      clockBehindMs: 0,
    }
    const replies = await Promise.all(
      LANES.map((lane) => read(base, jobs[lane], jobs.interactive, lane)),
    )
    for (const [index, lane] of LANES.entries()) {
      const [paused, threads, bytes, behindMs, failureMs, ...counts] = asList(replies[index])
      Object.assign(state, {
        load: { threads: Number(threads), bytes: Number(bytes) },
        clockBehindMs: Number(behindMs),
      })
      if (Number(failureMs) >= 0)
        state.lastFailureMs = Math.min(Number(failureMs), state.lastFailureMs ?? Infinity)
      const numbers = counts.map(Number)
      if (paused) state.paused[lane] = readPause(String(paused))
      for (const [at, of] of QUEUED_STATES.entries()) {
        const [jobs = 0, threads = 0, oldestMs = 0] = numbers.slice(3 * at)
        state.queued.push({ lane, state: of, jobs, threads, oldestMs })
      }
    }
    return state
  }
}

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
