// Fetches jobs of a lane, locks them, and keeps them locked.
import { hash } from 'node:crypto'
import type { Thread } from '@sluice/contract'
import { asList, openRedisClock, openScript } from '@sluice/process/redis'
import type { Redis } from 'ioredis'
import type { Lane, LockedJob } from '../job/job.ts'
import { readProgress } from '../job/job.ts'
import type { QueueKeys } from '../job/lanes.ts'

/** A worker's free capacity for jobs of one lane. */
export interface Capacity {
  jobs: number
  /** The bytes of the jobs' data. */
  bytes: number
  /** The worker has no job of the lane, so it may fetch one that exceeds the bytes. */
  isEmpty: boolean
}

/**
 * A fetch ends at this number of bytes. A worker fetches jobs of the lane again only once all of the fetch are
 * written, so a larger fetch would delay the next jobs, even if their tenant has the turn.
 */
const FETCH_BYTES = { interactive: 1024 * 1024, bulk: 512 * 1024 }

/**
 * If at least this number of jobs waits, any worker fetches: a larger batch costs hardly less per thread. A bulk job
 * has about 50 threads.
 */
const PLENTY = { interactive: 50, bulk: 4 }

/**
 * Makes a function that fetches jobs of a lane and locks them for `lockMs`: see fetch.lua. `now` is in ms since 1970.
 * Omit it if Redis may run the command later.
 */
export function createFetchJobs(redis: Redis, { base, jobs: laneKeys }: QueueKeys, worker: string, lockMs: number) {
  const fetchJobs = openScript(redis, new URL('./fetch.lua', import.meta.url))
  const clock = openRedisClock(redis)
  return async (lane: Lane, token: string, capacity: Capacity, now?: number) => {
    const bounds = { capacity, plenty: PLENTY[lane], enough: FETCH_BYTES[lane] }
    const ofLane = { name: lane, lease: `${base}lease:${lane}`, pauses: `${base}paused` }
    const reply = await fetchJobs(laneKeys[lane], { token, worker, lockMs, now, ...ofLane, ...bounds })
    const [due, misfit, jobs, lookAfterMs, redisMs] = asList(reply)
    const redisAhead = clock.note(Number(redisMs))
    return {
      jobs: asList(jobs).map((fields) => readLocked(lane, token, asList(fields), redisAhead)),
      /** The bytes of the next job if it exceeded the capacity, otherwise 0. */
      misfit: Number(misfit),
      /** When the next delayed job is due, in ms since 1970. */
      nextAt: Number(due) || undefined,
      /** Jobs were left to another worker, and this one must look again after this time. */
      lookAfterMs: Number(lookAfterMs) || undefined,
    }
  }
}

/** @param redisAhead by how much Redis's clock is ahead of the monotonic clock of this process. */
function readLocked(lane: Lane, token: string, fields: readonly unknown[], redisAhead: number): LockedJob {
  const [data, timestamp, started, attempts, quarantined, progress, name, id] = fields
  const facts = { id: String(id), name: String(name), lane, token }
  const times = { enqueuedAt: Number(timestamp), waitsSince: Number(timestamp) - redisAhead }
  const delivery = { ...facts, ...times, redelivered: Number(started) > 1 }
  const text = String(data)
  const job: LockedJob['data'] = JSON.parse(text)
  const content = { data: job, digests: job.threads.map(digestOf), bytes: Buffer.byteLength(text) }
  const history = { attempt: Number(attempts) + 1, quarantined: quarantined === 1, progress: readProgress(progress) }
  return { ...delivery, ...content, ...history }
}

/** Identifies the content of a thread, by 144 bits, as in ids. A thread has the same digest in any job. */
function digestOf(thread: Thread): string {
  return hash('sha256', JSON.stringify([thread]), 'base64url').slice(0, 24)
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
     * Shortens locks and leases that last longer than `lockMs`. They come from a Redis whose clock was ahead, before
     * a failover, and would outlive their worker.
     */
    shorten: (): Promise<unknown> => shorten(jobs[lane], lockMs, ...leases),
  }
}
