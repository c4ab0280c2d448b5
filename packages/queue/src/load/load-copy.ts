// Copies the load of the queue, which load.lua counts, and the levels of the keys' buckets into an
// API replica, which can then refuse a request before it reads the body. Measures how fast the
// queue drains: the rate bounds how many callers may wait, and says when a refused caller should
// try again. Also audits the load.
import { asList, openScript } from '@sluice/process/redis'
import type { Redis } from 'ioredis'
import type { Lane } from '../job/job.ts'
import type { QueueKeys } from '../job/lanes.ts'
import {
  type Caller,
  IdempotencyKeyReusedError,
  QueueFullError,
  QueueUnavailableError,
  type Quota,
  RateLimitedError,
} from './refusals.ts'

/**
 * The bounds of the load. The load is the jobs of both lanes that are accepted, and have neither
 * completed nor failed permanently.
 */
export interface QueueBounds {
  queueThreads: number
  /** The bytes of the jobs as Redis stores them. */
  queueBytes: number
  /** The part of each bound that one tenant may use, from 0 to 1. */
  tenantShare: number
  /** A caller is refused if, by the measured rate, it would wait longer than this for its turn. */
  waitingSeconds: number
  /** The most bytes of Redis for idempotency keys. */
  claimBytes: number
}

/** The load of a queue, or of one tenant in it. `interactive`: the threads of that lane. */
export type Load = Record<'threads' | 'bytes' | 'interactive', number>
/** The load of the whole queue. `drained`: all threads that ever left it. */
type LoadTotals = Load & Record<'drained' | 'drainedInteractive', number>

type Aged<Copied> = Copied & { at: number }
type Sample = Aged<LoadTotals>

/** A copy that is older than this refuses nothing, because jobs may have completed since. */
const FRESH_MS = 250
/** When the copy has more entries than this, entries that are not fresh are removed. */
const MAX_ENTRIES = 1_000
const LEAST_INTERACTIVE = 500
/**
 * Rates are measured over the last five seconds, by samples at least a quarter of a second apart.
 */
const WINDOW_MS = 5_000
const BETWEEN_MS = 250
/**
 * Workers count as busy in an interval if the load has this number of interactive threads at both
 * ends of it.
 */
const BACKLOG = 100
/**
 * The capacity in threads a second: FIRST_CAPACITY until a backlog was measured, then a running
 * mean in which the last measurement has the weight WEIGHT.
 */
const FIRST_CAPACITY = 500
const WEIGHT = 0.2

const EMPTY: Load = { threads: 0, bytes: 0, interactive: 0 }

/** Makes the copy, which is updated from the replies of enqueue.lua. */
export function createLoadCopy(bounds: QueueBounds) {
  const tenants = new Map<string, Aged<Load>>()
  const buckets = new Map<string, Aged<{ level: number }>>()
  let totals: Sample | undefined
  let samples: Sample[] = []
  let capacity = FIRST_CAPACITY
  const mostInteractive = () =>
    Math.max(LEAST_INTERACTIVE, Math.round(bounds.waitingSeconds * capacity))

  function mostOf(bound: QueueFullError['bound']): Load {
    const { queueThreads, queueBytes, tenantShare } = bounds
    const share = bound === 'full' ? 1 : tenantShare
    return {
      threads: queueThreads * share,
      bytes: queueBytes * share,
      interactive: mostInteractive() * share,
    }
  }

  const fullError = (bound: QueueFullError['bound'], load: Load = EMPTY) =>
    new QueueFullError(bound, retryAfter(load, mostOf(bound), samples, capacity))

  function isUsedUp(
    bound: QueueFullError['bound'],
    load: Aged<Load> | undefined,
    lane: Lane,
    now: number,
  ): boolean {
    if (load === undefined || now - load.at > FRESH_MS) return false
    const most = mostOf(bound)
    const isFull = load.threads >= most.threads || load.bytes >= most.bytes
    return isFull || (lane === 'interactive' && load.interactive >= most.interactive)
  }

  return {
    /**
     * The bound of interactive threads in the load: what workers store in `waitingSeconds`, at
     * least 500.
     */
    mostInteractive,
    /** @param at when Redis was asked, on the monotonic clock, in ms. */
    noteTotals(copied: LoadTotals, at: number): void {
      totals = { ...copied, at }
      const last = samples.at(-1)
      if (last !== undefined && at - last.at < BETWEEN_MS) return
      const isBusy = last !== undefined && Math.min(last.interactive, totals.interactive) >= BACKLOG
      if (isBusy) capacity = capacityAfter(capacity, last, totals)
      samples = [...samples.filter((sample) => at - sample.at <= WINDOW_MS), totals]
    },
    noteCaller({ tenant, quota }: Caller, load: Load, level: number, at: number): void {
      keep(tenants, tenant, { ...load, at })
      if (quota !== undefined) keep(buckets, quota.keyId, { level, at })
    },
    /** Returns how many threads had left the queue at Redis's last reply. */
    drained: () => totals?.drained,
    /**
     * Returns how many quotes a key may post now, by Redis's last reply. Returns undefined before
     * the first reply.
     */
    quotaLeft(quota: Quota): number | undefined {
      const bucket = buckets.get(quota.keyId)
      return bucket && Math.max(0, Math.floor(levelAt(bucket, quota, performance.now())))
    },
    /** Returns the error for an outcome that refuses a job: see enqueue.lua. */
    errorOf(outcome: string, { tenant, quota }: Caller): Error {
      if (outcome === 'rate' && quota)
        return new RateLimitedError(quota, buckets.get(quota.keyId)?.level ?? 0)
      if (outcome === 'full') return fullError('full', totals)
      if (outcome === 'share') return fullError('share', tenants.get(tenant))
      if (outcome === 'reused')
        return new IdempotencyKeyReusedError('the key stands for another request')
      return new QueueUnavailableError() // late
    },
    /**
     * Returns the error with which the script would most likely refuse a job. Returns none if the
     * copy is old.
     */
    refusalOf(
      { tenant, quota }: Caller,
      lane: Lane,
      now: number,
    ): QueueFullError | RateLimitedError | undefined {
      // The copy of a bucket may be old, but only the steady refill, which `levelAt` adds, can have
      // raised the level since. So what the copy refuses, the script would refuse too.
      const bucket = quota && buckets.get(quota.keyId)
      const level = quota && bucket ? levelAt(bucket, quota, now) : 1
      if (quota && level <= 0) return new RateLimitedError(quota, level)
      if (isUsedUp('full', totals, lane, now)) return fullError('full', totals)
      const own = tenants.get(tenant)
      return isUsedUp('share', own, lane, now) ? fullError('share', own) : undefined
    },
  }
}

function levelAt(
  { level, at }: Aged<{ level: number }>,
  { quotesPerSecond, burstQuotes }: Quota,
  now: number,
): number {
  return Math.min(burstQuotes, level + ((now - at) / 1000) * quotesPerSecond)
}

function keep<Entry extends { at: number }>(
  entries: Map<string, Entry>,
  key: string,
  entry: Entry,
): void {
  entries.set(key, entry)
  if (entries.size <= MAX_ENTRIES) return
  for (const [other, { at }] of entries) if (entry.at - at > FRESH_MS) entries.delete(other)
}

/**
 * Returns the new mean of the capacity, from the interactive threads that left the load between two
 * samples.
 */
function capacityAfter(capacity: number, last: Sample, next: Sample): number {
  const [passed, left] = [next.at - last.at, next.drainedInteractive - last.drainedInteractive]
  // While the store is unavailable, nothing drains, which does not measure the capacity.
  if (passed >= WINDOW_MS || left <= 0) return capacity
  return capacity + WEIGHT * ((left / passed) * 1000 - capacity)
}

/**
 * Refused callers are told to come again when the load has fallen to this part of its bound. At the
 * bound, only one of them would get in.
 */
const ROOM = 0.9
const MOST_SECONDS = 60
/** Samples within a shorter time measure no rate. */
const LEAST_SPAN_MS = 500

/**
 * Returns after how many seconds, from 1 to 60, a refused caller should try again. Takes the drain
 * rate from `samples` or, if they are too few, from `capacity` (threads a second). `most` is the
 * bound of `load`.
 */
function retryAfter(load: Load, most: Load, samples: readonly Sample[], capacity: number): number {
  const perSecond = drainRate(samples, 'drained') ?? capacity
  const bytesPerSecond = perSecond * (load.bytes / Math.max(load.threads, 1))
  const each = [
    (load.threads - ROOM * most.threads) / perSecond,
    (load.bytes - ROOM * most.bytes) / bytesPerSecond,
    (load.interactive - ROOM * most.interactive) /
      (drainRate(samples, 'drainedInteractive') ?? capacity),
  ]
  const seconds = Math.max(...each.filter((one) => !Number.isNaN(one)))
  // Random, so that the callers do not all come again in the same second.
  if (seconds >= MOST_SECONDS) return Math.round(MOST_SECONDS - Math.random() * 10)
  return Math.min(MOST_SECONDS, Math.max(1, Math.ceil(seconds * (1 + Math.random() / 4))))
}

/**
 * Returns how many threads a second left the load. Returns undefined if the samples span too short
 * a time.
 */
function drainRate(
  [first, ...others]: readonly Sample[],
  field: 'drained' | 'drainedInteractive',
): number | undefined {
  const last = others.at(-1)
  if (first === undefined || last === undefined || last.at - first.at < LEAST_SPAN_MS)
    return undefined
  return ((last[field] - first[field]) / (last.at - first.at)) * 1000
}

/**
 * One call checks this number of jobs, in 0.5 ms. With a call every five seconds, 200,000 jobs take
 * half an hour.
 */
const JOBS_AT_ONCE = 500

/**
 * The result of comparing the totals with the jobs. `relisted`: jobs were in no list, and wait
 * again. `many`: there were too many jobs to compare.
 */
export type LoadAudit = (typeof AUDITS)[number]
const AUDITS = ['right', 'corrected', 'relisted', 'many'] as const

/**
 * Makes a function that audits the next jobs. After the last job, it returns the result: see
 * load.lua.
 */
export function createLoadAudit(
  redis: Redis,
  { base, jobs }: QueueKeys,
): () => Promise<LoadAudit | undefined> {
  const audit = openScript(redis, new URL('./load.lua#audit', import.meta.url))
  let cursor = '0'
  return async () => {
    const [next, found] = asList(
      await audit(base, cursor, JOBS_AT_ONCE, jobs.interactive, jobs.bulk),
    )
    cursor = String(next)
    return AUDITS.find((one) => one === found)
  }
}
