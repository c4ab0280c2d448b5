// BullMQ's own worker of a lane, which handles the rare cases: failed attempts, jobs that are returned, and stalled jobs.
import { openScript } from '@sluice/process/redis'
import { Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import type { IngestJob, Lane, LockedJob } from '../job/job.ts'
import type { QueueKeys } from '../job/lanes.ts'

/** How often a lane is searched for jobs whose lock has expired. In each interval, one worker does so. */
const STALLED_CHECK_MS = 2_000

/**
 * Opens BullMQ's own worker of a lane. If a worker is killed, other workers fetch its jobs within `lockMs +
 * STALLED_CHECK_MS`.
 */
export function openWorker(keys: QueueKeys, lane: Lane, redis: Redis, lockMs: number): Worker<IngestJob> {
  return new Worker<IngestJob>(keys.queues[lane], null, {
    connection: redis,
    prefix: keys.prefix,
    autorun: false,
    lockDuration: lockMs,
    stalledInterval: STALLED_CHECK_MS,
    // No bound of BullMQ's: it counts a crash against every job that the worker had locked. fetch.lua counts instead.
    maxStalledCount: Number.MAX_SAFE_INTEGER,
    settings: { backoffStrategy: delayBeforeNextAttempt },
    removeOnComplete: { count: 0 },
    skipVersionCheck: true,
  })
}

/** Half a second, doubled for each further attempt. Random, so that jobs that failed together are not retried together. */
function delayBeforeNextAttempt(attempts: number): number {
  return 500 * 2 ** (attempts - 1) * (0.5 + Math.random())
}

/** Makes functions for the locked jobs of a lane. A lock lasts `lockMs`. */
export function createLocks(redis: Redis, { base, jobs }: QueueKeys, lane: Lane, lockMs: number) {
  const renew = openScript(redis, new URL('../bullmq-layout/jobs.lua#renew', import.meta.url))
  const shorten = openScript(redis, new URL('../bullmq-layout/jobs.lua#shorten', import.meta.url))
  const setAttempts = openScript(redis, new URL('../bullmq-layout/jobs.lua#attempts', import.meta.url))
  const leases = [`lease:${lane}`, `lease:${lane}:looker`, 'operations-lease'].map((key) => base + key)
  return {
    renew: (locked: Iterable<LockedJob>): Promise<unknown> =>
      renew(jobs[lane], lockMs, ...[...locked].flatMap(({ id, token }) => [id, token])),
    setAttempts: ({ id, token }: LockedJob, attempts: number): Promise<unknown> =>
      setAttempts(jobs[lane], id, token, attempts),
    /**
     * Shortens locks and leases that last longer than `lockMs`. They come from a Redis whose clock was ahead, before a
     * failover, and would outlive their worker.
     */
    shorten: (): Promise<unknown> => shorten(jobs[lane], lockMs, ...leases),
  }
}
