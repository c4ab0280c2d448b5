// BullMQ's own worker of a lane, which handles the rare cases: delays, retries and stalled jobs.

import { openScript } from '@sluice/process/redis'
import { Job, type MinimalJob, Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import type { QueueKeys } from '../bullmq-layout/queue-keys.ts'
import { type IngestJob, type Lane, type LockedJob, triesMade } from '../job/job.ts'
import { lockedJob } from './fetch-and-complete.ts'

/** How often each worker looks for jobs whose lock has expired. */
const STALLED_CHECK_MS = 2_000

/**
 * Opens BullMQ's own worker of a lane, which fetches nothing by itself.
 *
 * @param lockMs how long locks last. Other workers fetch a killed worker's jobs within `lockMs + STALLED_CHECK_MS`.
 */
export function openWorker(keys: QueueKeys, lane: Lane, redis: Redis, lockMs: number): Worker<IngestJob> {
  return new Worker<IngestJob>(keys.queues[lane], null, {
    connection: redis,
    prefix: keys.prefix,
    autorun: false,
    lockDuration: lockMs,
    stalledInterval: STALLED_CHECK_MS,
    // No bound of BullMQ's: it counts a crash against every job that the worker had locked. `triesMade` counts instead.
    maxStalledCount: Number.MAX_SAFE_INTEGER,
    settings: { backoffStrategy: delayBeforeNextTry },
    removeOnComplete: { count: 0 },
    skipVersionCheck: true,
  })
}

/** Returns 500 ms, doubled for each failed try, ± 50 %, so that jobs that failed together are not retried together. */
function delayBeforeNextTry(_attempts: number, _type?: string, _error?: Error, job?: MinimalJob): number {
  const failed = job instanceof Job ? triesMade(job) : 0
  return 500 * 2 ** failed * (0.5 + Math.random())
}

/** Describes a job that BullMQ's own script has fetched. */
export function fetchedByBullMQ(job: Job<IngestJob>, lane: Lane, token: string): LockedJob {
  const { id = '', name, data, timestamp: enqueuedAt } = job
  const delivery = { id, name, lane, token, enqueuedAt, redelivered: job.attemptsStarted > 1 }
  return lockedJob(JSON.stringify(data), delivery, job)
}

/** Makes functions that renew and shorten the locks on a lane's jobs. A lock lasts `lockMs`. */
export function createLocks(redis: Redis, { base, jobs }: QueueKeys, lane: Lane, lockMs: number) {
  const renew = openScript(redis, new URL('../bullmq-layout/jobs.lua#renew', import.meta.url))
  const shorten = openScript(redis, new URL('../bullmq-layout/jobs.lua#shorten', import.meta.url))
  const leases = [`lease:${lane}`, `lease:${lane}:lookers`, 'operations-lease'].map((key) => base + key)
  return {
    /** Renews the locks of jobs that this process has locked: they then last `lockMs` from now. */
    renew: (locked: Iterable<LockedJob>): Promise<unknown> =>
      renew(jobs[lane], lockMs, ...[...locked].flatMap(({ id, token }) => [id, token])),
    /**
     * Shortens locks and leases that last longer than `lockMs`, and returns their number. After a failover to a Redis
     * whose clock is behind, they would not expire before its clock has caught up.
     */
    shorten: (): Promise<unknown> => shorten(jobs[lane], lockMs, ...leases),
  }
}
