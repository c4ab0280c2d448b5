// The load of a queue, its bounds, and the callers that add to it: read from Redis, and kept true if jobs are removed
// behind Sluice's back, as by BullMQ's own tools.
import type { Redis } from 'ioredis'
import type { QueueKeys } from '../bullmq-layout/queue-keys.ts'
import { asList, openScript } from '../redis/script.ts'

/** The bounds of the jobs that are accepted and not completed, over both lanes and all states. */
export interface QueueBounds {
  queueThreads: number
  /** Of the jobs as Redis keeps them. */
  queueBytes: number
  /** The part of each bound for one tenant, from 0 to 1. */
  tenantShare: number
  /** A caller that would wait longer for its turn is refused, by the measured rate. */
  waitingSeconds: number
  /** The most bytes of Redis for idempotency keys. */
  claimBytes: number
}

/** The load of a queue, or of one tenant in it. `interactive`: threads of that lane. */
export type Load = Record<'threads' | 'bytes' | 'interactive', number>

/** The load of the whole queue, as a script returns it. `drained`: threads that ever left it. */
export type Totals = Load & Record<'drained' | 'drainedInteractive', number>

export interface Quota {
  /** The public id of the key. */
  keyId: string
  quotesPerSecond: number
  /** The most that may be posted at once after a pause, in quotes. */
  burstQuotes: number
}

export interface Caller {
  tenant: string
  quota?: Quota
}

/** Jobs that one call checks, in 0.5 ms: 200,000 in half an hour, at a call every five seconds. */
const JOBS_AT_ONCE = 500

/** What comparing the totals with the jobs found. `many`: too many jobs to compare at once. */
export type LoadAudit = (typeof AUDITS)[number]
const AUDITS = ['right', 'corrected', 'many'] as const

/**
 * Makes a function that checks the next few jobs, and removes those that are gone from the load. After the last ones, it
 * compares the totals with the jobs, corrects them, and returns what it found.
 */
export function createLoadAudit(redis: Redis, { base, jobs }: QueueKeys): () => Promise<LoadAudit | undefined> {
  const audit = openScript(redis, new URL('./load.lua#audit', import.meta.url))
  let cursor = '0'
  return async () => {
    const [next, found] = asList(await audit(base, cursor, JOBS_AT_ONCE, jobs.interactive, jobs.bulk))
    cursor = String(next)
    return AUDITS.find((one) => one === found)
  }
}
