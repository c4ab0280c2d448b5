// Types of a queue's load, of its bounds, and of the callers that add to it. Audits the load.
import { asList, openScript } from '@sluice/process/redis'
import type { Redis } from 'ioredis'
import type { QueueKeys } from '../job/lanes.ts'

/** The bounds of the load: the jobs that are accepted, and neither completed nor failed for good, over both lanes. */
export interface QueueBounds {
  queueThreads: number
  /** Of the jobs as Redis stores them. */
  queueBytes: number
  /** The part of each bound that one tenant may use, from 0 to 1. */
  tenantShare: number
  /** A caller that would wait longer for its turn, by the measured rate, is refused. */
  waitingSeconds: number
  /** The most bytes of Redis for idempotency keys. */
  claimBytes: number
}

/** The load of a queue, or of one tenant in it. `interactive`: threads of that lane. */
export type Load = Record<'threads' | 'bytes' | 'interactive', number>
/** The load of the whole queue. `drained`: threads that ever left it. */
export type LoadTotals = Load & Record<'drained' | 'drainedInteractive', number>

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

/** The jobs that one call checks, in 0.5 ms. With a call every five seconds, 200,000 jobs take half an hour. */
const JOBS_AT_ONCE = 500

/** The result of comparing the totals with the jobs. `many`: too many jobs to compare at once. */
export type LoadAudit = (typeof AUDITS)[number]
const AUDITS = ['right', 'corrected', 'many'] as const

/** Makes a function that audits the next few jobs and, after the last ones, returns the result: see load.lua. */
export function createLoadAudit(redis: Redis, { base, jobs }: QueueKeys): () => Promise<LoadAudit | undefined> {
  const audit = openScript(redis, new URL('./load.lua#audit', import.meta.url))
  let cursor = '0'
  return async () => {
    const [next, found] = asList(await audit(base, cursor, JOBS_AT_ONCE, jobs.interactive, jobs.bulk))
    cursor = String(next)
    return AUDITS.find((one) => one === found)
  }
}
