// A replica's copy of the queue's load and of the keys' buckets, to refuse requests before their bodies are read.
import type { Lane } from '../job/job.ts'
import { BACKLOG, BETWEEN_MS, capacityAfter, FIRST_CAPACITY, retryAfter, type Sample, WINDOW_MS } from './drain.ts'
import type { Caller, Load, QueueBounds, Quota, Totals } from './queue-load.ts'
import { IdempotencyKeyReusedError, QueueFullError, QueueUnavailableError, RateLimitedError } from './refusals.ts'

/** What was copied, and when, on the monotonic clock, in ms. */
type Aged<Copied> = Copied & { at: number }

/** An older copy of the load refuses nothing: jobs may have been completed meanwhile. */
const FRESH_MS = 250
/** Beyond `MAX_ENTRIES`, entries older than `FRESH_MS` are removed. */
const MAX_ENTRIES = 1_000
/** The least bound of interactive threads, for a slow or idle queue. */
const LEAST_INTERACTIVE = 500
const EMPTY: Load = { threads: 0, bytes: 0, interactive: 0 }

/** Keeps the last results of the scripts. */
export function createLoadCopy(bounds: QueueBounds) {
  const tenants = new Map<string, Aged<Load>>()
  const buckets = new Map<string, Aged<{ level: number }>>()
  let totals: Sample | undefined
  let samples: Sample[] = []
  let capacity = FIRST_CAPACITY
  const mostInteractive = () => Math.max(LEAST_INTERACTIVE, Math.round(bounds.waitingSeconds * capacity))

  function mostOf(bound: QueueFullError['bound']): Load {
    const { queueThreads, queueBytes, tenantShare } = bounds
    const share = bound === 'full' ? 1 : tenantShare
    return { threads: queueThreads * share, bytes: queueBytes * share, interactive: mostInteractive() * share }
  }

  const full = (bound: QueueFullError['bound'], load: Load = EMPTY) =>
    new QueueFullError(bound, retryAfter(load, mostOf(bound), samples, capacity))

  function isUsedUp(bound: QueueFullError['bound'], load: Aged<Load> | undefined, lane: Lane, now: number): boolean {
    if (load === undefined || now - load.at > FRESH_MS) return false
    const most = mostOf(bound)
    const isFull = load.threads >= most.threads || load.bytes >= most.bytes
    return isFull || (lane === 'interactive' && load.interactive >= most.interactive)
  }

  return {
    /** The most interactive threads in the load, by the measured capacity. */
    mostInteractive,
    /** @param at when Redis was asked, on the monotonic clock, in ms. */
    noteTotals(copied: Totals, at: number): void {
      totals = { ...copied, at }
      const last = samples.at(-1)
      if (last !== undefined && at - last.at < BETWEEN_MS) return
      const isBusy = last !== undefined && Math.min(last.interactive, totals.interactive) >= BACKLOG
      if (isBusy) capacity = capacityAfter(capacity, last, totals)
      // Redis may have lost its data, and counts anew.
      const isLost = last !== undefined && totals.drained < last.drained
      samples = [...(isLost ? [] : samples.filter((sample) => at - sample.at <= WINDOW_MS)), totals]
    },
    /** @param level of the bucket, in quotes. Not above zero: it is empty. */
    noteCaller({ tenant, quota }: Caller, load: Load, level: number, at: number): void {
      keep(tenants, tenant, { ...load, at })
      if (quota !== undefined) keep(buckets, quota.keyId, { level, at })
    },
    /** Returns how many quotes a key may post by the last reply of Redis. Undefined before the first reply. */
    quotaLeft(quota: Quota): number | undefined {
      const bucket = buckets.get(quota.keyId)
      return bucket && Math.max(0, Math.floor(levelAt(bucket, quota, performance.now())))
    },
    /** Returns the error for an outcome that refuses a job: see enqueue.lua. */
    errorOf(outcome: string, { tenant, quota }: Caller): Error {
      if (outcome === 'rate' && quota) return new RateLimitedError(quota, buckets.get(quota.keyId)?.level ?? 0)
      if (outcome === 'full') return full('full', totals)
      if (outcome === 'share') return full('share', tenants.get(tenant))
      if (outcome === 'reused') return new IdempotencyKeyReusedError('the key stands for another request')
      return new QueueUnavailableError() // late
    },
    /** The error that the script would most likely cause. A copy of the load that is too old causes none. */
    refusalOf({ tenant, quota }: Caller, lane: Lane, now: number): QueueFullError | RateLimitedError | undefined {
      // Of any age: beside the steady refill, other requests can only have lowered the level.
      const bucket = quota && buckets.get(quota.keyId)
      const level = quota && bucket ? levelAt(bucket, quota, now) : 1
      if (quota && level <= 0) return new RateLimitedError(quota, level)
      if (isUsedUp('full', totals, lane, now)) return full('full', totals)
      const own = tenants.get(tenant)
      return isUsedUp('share', own, lane, now) ? full('share', own) : undefined
    },
  }
}

/** A bucket is refilled steadily, up to its burst. */
function levelAt({ level, at }: Aged<{ level: number }>, { quotesPerSecond, burstQuotes }: Quota, now: number): number {
  return Math.min(burstQuotes, level + ((now - at) / 1000) * quotesPerSecond)
}

function keep<Entry extends { at: number }>(entries: Map<string, Entry>, key: string, entry: Entry): void {
  entries.set(key, entry)
  if (entries.size <= MAX_ENTRIES) return
  for (const [other, { at }] of entries) if (entry.at - at > FRESH_MS) entries.delete(other)
}
