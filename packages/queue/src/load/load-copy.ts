// A replica's copy of the queue's load and of the keys' buckets, to refuse requests before their bodies are read.
import type { Lane } from '../job/job.ts'
import type { Caller, Load, QueueBounds, Quota, Totals } from './queue-load.ts'
import { otherRefusal, type QueueFullError, queueFull, RateLimitedError, type Sample } from './refusals.ts'

interface Aged<Value> {
  value: Value
  /** On the monotonic clock, in ms. */
  at: number
}

/** An older copy of the load refuses nothing: jobs may have been completed meanwhile. */
const FRESH_MS = 250
/** Beyond `MAX_ENTRIES`, entries older than `FRESH_MS` are removed. */
const MAX_ENTRIES = 1_000
/** The least bound of interactive threads, for a slow or idle queue. */
const LEAST_INTERACTIVE = 500
const EMPTY: Load = { threads: 0, bytes: 0, interactive: 0 }

type Refusal = QueueFullError | RateLimitedError | undefined

/** Keeps the last results of the scripts. */
export function createLoadCopy(bounds: QueueBounds) {
  const drain = measureDrain()
  let totals: Aged<Totals> | undefined
  const tenants = new Map<string, Aged<Load>>()
  const buckets = new Map<string, Aged<number>>()
  const mostInteractive = () => Math.max(LEAST_INTERACTIVE, Math.round(bounds.waitingSeconds * drain.capacity()))

  function mostOf(bound: QueueFullError['bound']): Load {
    const share = bound === 'full' ? 1 : bounds.tenantShare
    return { threads: bounds.threads * share, bytes: bounds.bytes * share, interactive: mostInteractive() * share }
  }

  const full = (bound: QueueFullError['bound'], load = EMPTY) =>
    queueFull(bound, load, mostOf(bound), drain.samples(), drain.capacity())

  function refusalBy(bound: QueueFullError['bound'], load: Load | undefined, lane: Lane): Refusal {
    if (load === undefined) return undefined
    const most = mostOf(bound)
    const isUsedUp = load.threads >= most.threads || load.bytes >= most.bytes
    return isUsedUp || (lane === 'interactive' && load.interactive >= most.interactive) ? full(bound, load) : undefined
  }

  return {
    /** The most interactive threads in the load, by the measured capacity. */
    mostInteractive,
    /** @param at when Redis was asked, on the monotonic clock, in ms. */
    noteTotals(value: Totals, at: number): void {
      totals = { value, at }
      drain.note(value, at)
    },
    /** @param level of the bucket, in quotes. Not above zero: it is empty. */
    noteCaller({ tenant, quota }: Caller, ofTenant: Load, level: number, at: number): void {
      keep(tenants, tenant, ofTenant, at)
      if (quota !== undefined) keep(buckets, quota.keyId, level, at)
    },
    /** Returns how many quotes a key may post by the last reply of Redis. Undefined before the first reply. */
    quotaLeft(quota: Quota): number | undefined {
      const bucket = buckets.get(quota.keyId)
      return bucket && Math.max(0, Math.floor(levelAt(bucket, quota, performance.now())))
    },
    /** Returns the error for an outcome that refuses a job: see enqueue.lua. */
    errorOf(outcome: string, { tenant, quota }: Caller): Error {
      if (outcome === 'rate' && quota) return new RateLimitedError(quota, buckets.get(quota.keyId)?.value ?? 0)
      if (outcome === 'full') return full('full', totals?.value)
      return outcome === 'share' ? full('share', tenants.get(tenant)?.value) : otherRefusal(outcome)
    },
    /** The error that the script would most likely cause. A copy of the load that is too old causes none. */
    refusalOf({ tenant, quota }: Caller, lane: Lane, now: number): Refusal {
      // Of any age: beside the steady refill, other requests can only have lowered the level.
      const bucket = quota && buckets.get(quota.keyId)
      const level = quota && bucket ? levelAt(bucket, quota, now) : 1
      if (quota && level <= 0) return new RateLimitedError(quota, level)
      const all = refusalBy('full', fresh(totals, now)?.value, lane)
      return all ?? refusalBy('share', fresh(tenants.get(tenant), now)?.value, lane)
    },
  }
}

/** A bucket is refilled steadily, up to its burst. */
function levelAt({ value, at }: Aged<number>, { quotesPerSecond, burstQuotes }: Quota, now: number): number {
  return Math.min(burstQuotes, value + ((now - at) / 1000) * quotesPerSecond)
}

function fresh<Value>(aged: Aged<Value> | undefined, now: number): Aged<Value> | undefined {
  return aged !== undefined && now - aged.at <= FRESH_MS ? aged : undefined
}

function keep<Value>(entries: Map<string, Aged<Value>>, key: string, value: Value, at: number): void {
  entries.set(key, { value, at })
  if (entries.size <= MAX_ENTRIES) return
  for (const [other, aged] of entries) if (fresh(aged, at) === undefined) entries.delete(other)
}

/** Rates are those of the last five seconds, by samples at least a quarter of a second apart. */
const WINDOW_MS = 5_000
const BETWEEN_MS = 250
/** Workers are busy in an interval if at least this number of threads waits at both ends of the interval. */
const BACKLOG = 100
/** The assumed rate of interactive threads until a backlog was measured, in threads a second. */
const FIRST_GUESS = 500
/** The weight of the last interval. */
const WEIGHT = 0.2

/** Measures how fast a queue drains, from samples of its totals. */
function measureDrain() {
  let samples: Sample[] = []
  let capacity = FIRST_GUESS

  return {
    note(totals: Totals, at: number): void {
      const last = samples.at(-1) ?? { ...totals, at: Number.NEGATIVE_INFINITY }
      const passed = at - last.at
      if (passed < BETWEEN_MS) return
      // Redis may have lost its data.
      if (totals.drained < last.drained) samples = []
      const left = totals.drainedInteractive - last.drainedInteractive
      const isBusy = Math.min(last.interactive, totals.interactive) >= BACKLOG
      // A store that is away drains nothing, which shows nothing about the capacity.
      if (passed < WINDOW_MS && isBusy && left > 0) capacity += WEIGHT * ((left / passed) * 1000 - capacity)
      samples = [...samples.filter((sample) => at - sample.at <= WINDOW_MS), { ...totals, at }]
    },
    samples: () => samples,
    /** Interactive threads a second that leave the load while enough of them wait. */
    capacity: () => capacity,
  }
}
