// A replica's copy of the queue's load and of the keys' buckets. It refuses a request early, before its body is read, and says when to come again.
import type { Lane } from './job.ts'
import type { Load, QueueBounds, Totals } from './queue-load.ts'
import { QueueFullError, type Quota, RateLimitedError } from './refusals.ts'

const EMPTY: Load = { threads: 0, bytes: 0, interactive: 0 }

/** Whose a request is. */
export interface Caller {
  tenant: string
  quota?: Quota
}

/** A request that is about to be enqueued. */
export interface Applicant extends Caller {
  lane: Lane
}

interface Aged<Value> {
  value: Value
  /** On the monotonic clock, in ms. */
  at: number
}

/** An older copy refuses nothing. */
const FRESH_MS = 250
/** Beyond so many entries, those that are too old to refuse anything are removed. */
const MAX_ENTRIES = 1_000
/** A slow or idle queue accepts so many interactive threads all the same. */
const LEAST_INTERACTIVE = 500

/** Keeps the last results of the scripts. */
export function createLoadCopy(bounds: QueueBounds) {
  const drainRate = createDrainRate()
  let totals: Aged<Totals> | undefined
  const tenants = new Map<string, Aged<Load>>()
  const buckets = new Map<string, Aged<number>>()
  const mostInteractive = () => Math.max(LEAST_INTERACTIVE, Math.round(bounds.waitingSeconds * drainRate.capacity()))

  function isUsedUp(load: Load, share: number, lane: Lane): boolean {
    if (load.threads >= bounds.threads * share || load.bytes >= bounds.bytes * share) return true
    return lane === 'interactive' && load.interactive >= mostInteractive() * share
  }

  function secondsUntilRoom({ threads, bytes, interactive }: Load, share: number): number {
    const perSecond = drainRate.threads() ?? drainRate.capacity()
    const bytesPerSecond = perSecond * (bytes / Math.max(threads, 1))
    const seconds = [
      (threads - ROOM * bounds.threads * share) / perSecond,
      (bytes - ROOM * bounds.bytes * share) / bytesPerSecond,
      (interactive - ROOM * mostInteractive() * share) / (drainRate.interactive() ?? drainRate.capacity()),
    ]
    return Math.max(...seconds.filter((one) => !Number.isNaN(one)))
  }

  function full(bound: QueueFullError['bound'], load: Load): QueueFullError {
    return new QueueFullError(bound, retryAfter(secondsUntilRoom(load, bound === 'full' ? 1 : bounds.tenantShare)))
  }

  return {
    bounds,
    /** The most interactive threads in the load, by the measured capacity. */
    mostInteractive,
    /** @param at when Redis was asked, on the monotonic clock, in ms. */
    noteTotals(value: Totals, at: number): void {
      totals = { value, at }
      drainRate.note(value, at)
    },
    /** @param level of the bucket, in quotes. Not above zero: it is empty. */
    noteCaller({ tenant, quota }: Caller, ofTenant: Load, level: number, at: number): void {
      keep(tenants, tenant, ofTenant, at)
      if (quota !== undefined) keep(buckets, quota.keyId, level, at)
    },
    /** How many quotes the key's bucket has by the last reply. Undefined if none told it. */
    levelOf(quota: Quota, now: number): number | undefined {
      const bucket = buckets.get(quota.keyId)
      return bucket && levelAt(bucket, quota, now)
    },
    /** The error for the word of the script that refuses a job. Other words mean none. */
    errorOf(word: string, { tenant, quota }: Caller): QueueFullError | RateLimitedError | undefined {
      if (word === 'rate' && quota !== undefined) return rateLimited(quota, buckets.get(quota.keyId)?.value ?? 0)
      if (word === 'full') return full('full', totals?.value ?? EMPTY)
      return word === 'share' ? full('share', tenants.get(tenant)?.value ?? EMPTY) : undefined
    },
    /** The error that the script would most likely cause. A copy that is too old causes none. */
    refusalOf({ tenant, lane, quota }: Applicant, now: number): QueueFullError | RateLimitedError | undefined {
      const bucket = quota && fresh(buckets.get(quota.keyId), now)
      if (quota !== undefined && bucket !== undefined) {
        const level = levelAt(bucket, quota, now)
        if (level <= 0) return rateLimited(quota, level)
      }
      const all = fresh(totals, now)?.value
      if (all !== undefined && isUsedUp(all, 1, lane)) return full('full', all)
      const ofTenant = fresh(tenants.get(tenant), now)?.value
      if (ofTenant !== undefined && isUsedUp(ofTenant, bounds.tenantShare, lane)) return full('share', ofTenant)
      return undefined
    },
  }
}

/** A bucket is refilled steadily, up to its burst. */
function levelAt({ value, at }: Aged<number>, { quotesPerSecond, burstQuotes }: Quota, now: number): number {
  return Math.min(burstQuotes, value + ((now - at) / 1000) * quotesPerSecond)
}

/** A caller comes again when so much of a bound is used. At the bound itself, one caller would get in and all others come again. */
const ROOM = 0.9
const MOST_SECONDS = 60

/** Whole seconds from 1 to 60. They differ between callers, so that not all come again at once. */
function retryAfter(seconds: number): number {
  if (seconds >= MOST_SECONDS) return Math.round(MOST_SECONDS - Math.random() * 10)
  return Math.min(MOST_SECONDS, Math.max(1, Math.ceil(seconds * (1 + Math.random() / 4))))
}

function rateLimited(quota: Quota, level: number): RateLimitedError {
  return new RateLimitedError(quota, Math.max(1, Math.ceil(-level / quota.quotesPerSecond)))
}

function fresh<Value>(aged: Aged<Value> | undefined, now: number): Aged<Value> | undefined {
  return aged !== undefined && now - aged.at <= FRESH_MS ? aged : undefined
}

function keep<Value>(entries: Map<string, Aged<Value>>, key: string, value: Value, at: number): void {
  entries.set(key, { value, at })
  if (entries.size <= MAX_ENTRIES) return
  for (const [other, aged] of entries) if (fresh(aged, at) === undefined) entries.delete(other)
}

interface Sample extends Totals {
  /** On the monotonic clock, in ms. */
  at: number
}

/** The rate is that of the last five seconds, by samples at least a quarter of a second apart. */
const WINDOW_MS = 5_000
const BETWEEN_MS = 250
/** A shorter span shows too little. */
const LEAST_SPAN_MS = 500
/** Workers are busy for sure while so many threads wait at both ends of an interval. */
const BACKLOG = 100
/** The assumed rate of interactive threads until a backlog was measured, in threads a second. */
const FIRST_GUESS = 500
/** The weight of the last interval. */
const WEIGHT = 0.2

/** Measures the rates of a queue from the samples that it is given. */
function createDrainRate() {
  let samples: Sample[] = []
  let capacity = FIRST_GUESS

  function perSecond(field: 'drained' | 'drainedInteractive'): number | undefined {
    const [first] = samples
    const last = samples.at(-1)
    if (first === undefined || last === undefined || last.at - first.at < LEAST_SPAN_MS) return undefined
    return ((last[field] - first[field]) / (last.at - first.at)) * 1000
  }

  /** A store that is away drains nothing, which shows nothing about the capacity. */
  function measureCapacity(before: Sample, now: Sample): void {
    const left = now.drainedInteractive - before.drainedInteractive
    if (left <= 0 || Math.min(before.interactive, now.interactive) < BACKLOG) return
    capacity += WEIGHT * ((left / (now.at - before.at)) * 1000 - capacity)
  }

  return {
    note(totals: Totals, at: number): void {
      const before = samples.at(-1)
      if (before !== undefined && at - before.at < BETWEEN_MS) return
      const now = { ...totals, at }
      // Redis may have lost its data.
      if (before !== undefined && totals.drained < before.drained) samples = []
      else if (before !== undefined && at - before.at < WINDOW_MS) measureCapacity(before, now)
      samples = [...samples.filter((sample) => at - sample.at <= WINDOW_MS), now]
    },
    /** Threads a second that leave the load. Undefined before it was measured. */
    threads: () => perSecond('drained'),
    /** The same for threads of the interactive lane. */
    interactive: () => perSecond('drainedInteractive'),
    /** Interactive threads a second that leave the load while enough of them wait. */
    capacity: () => capacity,
  }
}
