// Fetches jobs of a lane, now or when the next one is added, locks them, and renews their locks.
import { hash, randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Thread } from '@sluice/contract'
import { asList, connectLike, openRedisClock, openScript } from '@sluice/process/redis'
import type { Redis } from 'ioredis'
import type { Deletion, Lane, LockedJob } from '../job/job.ts'
import { readPayload, readProgress } from '../job/job.ts'
import type { QueueKeys } from '../job/lanes.ts'

/** A worker's free capacity for jobs of one lane. */
export interface Capacity {
  jobs: number
  /** The bytes of the jobs' data. */
  bytes: number
  /** The worker has no job of the lane, so it may fetch one job that has more bytes than these. */
  isEmpty: boolean
}

/**
 * A fetch ends when it has this number of bytes. A worker fetches again from the lane only after it
 * has stored all jobs of the fetch, so a larger fetch would delay other tenants' jobs.
 */
const FETCH_BYTES = { interactive: 1024 * 1024, bulk: 512 * 1024 }

/**
 * If at least this number of jobs waits, any worker fetches, also without the lease: a larger batch
 * would hardly be cheaper per thread. A bulk job has about 50 threads.
 */
const PLENTY = { interactive: 50, bulk: 4 }

/**
 * Makes a function that fetches jobs of a lane and locks them for `lockMs`: see fetch.lua.
 * `now` is in ms since 1970. Omit it if Redis may run the command later.
 * @param onMovedBack is called when Redis's clock was moved back.
 */
export function createFetchJobs(
  redis: Redis,
  { base, jobs: laneKeys }: QueueKeys,
  worker: string,
  lockMs: number,
  onMovedBack = () => {},
) {
  const fetchJobs = openScript(redis, new URL('./fetch.lua', import.meta.url))
  const clock = openRedisClock(redis)
  let lastMs = 0
  return async (lane: Lane, token: string, capacity: Capacity, now?: number) => {
    const reply = await fetchJobs(laneKeys[lane], {
      token,
      worker,
      lockMs,
      now,
      suppressions: suppressionsKey(base),
      name: lane,
      lease: `${base}lease:${lane}`,
      pauses: `${base}paused`,
      capacity,
      plenty: PLENTY[lane],
      enough: FETCH_BYTES[lane],
    })
    const [due, misfit, jobs, lookAfterMs, redisMs, listed] = asList(reply)
    const redisAhead = clock.note(Number(redisMs))
    if (Number(redisMs) < lastMs) onMovedBack()
    lastMs = Number(redisMs)
    const suppressions = String(listed ?? '')
    return {
      jobs: asList(jobs).map((fields) =>
        readLocked(lane, token, asList(fields), redisAhead, suppressions),
      ),
      /** The bytes of the next job if it exceeded the capacity, otherwise 0. */
      misfit: Number(misfit),
      /** When the next delayed job is due, in ms since 1970. */
      nextAt: Number(due) || undefined,
      /** If jobs were left to another worker, this worker must look again after this time. */
      lookAfterMs: Number(lookAfterMs) || undefined,
    }
  }
}

const suppressionsKey = (base: string) => `${base}suppressions`

/**
 * Has workers read the list of suppressions again before they store jobs that they fetch from now
 * on. Call it once a change of the list is stored with majority, and before the change is answered.
 */
export async function noteSuppressions(redis: Redis, { base }: QueueKeys): Promise<void> {
  await redis.set(suppressionsKey(base), randomUUID())
}

/** @param redisAhead by how much Redis's clock is ahead of the monotonic clock of this process. */
function readLocked(
  lane: Lane,
  token: string,
  fields: readonly unknown[],
  redisAhead: number,
  suppressions: string,
): LockedJob {
  const [text, timestamp, started, attempts, quarantined, progress, name, id] = fields
  const enqueuedAt = Number(timestamp)
  const data = readPayload(String(text))
  return {
    id: String(id),
    name: String(name),
    lane,
    token,
    suppressions,
    enqueuedAt,
    waitsSince: enqueuedAt - redisAhead,
    redelivered: Number(started) > 1,
    data,
    digests: data.threads.map(digestOf),
    bytes: Buffer.byteLength(String(text)),
    attempt: Number(attempts) + 1,
    quarantined: quarantined === 1,
    progress: readProgress(progress),
  }
}

/**
 * Identifies the content of a thread by 144 bits, as ids do. A thread has the same digest in every
 * job.
 */
function digestOf(thread: Thread | Deletion): string | undefined {
  if ('deletes' in thread) return undefined
  return hash('sha256', JSON.stringify([thread]), 'base64url').slice(0, 24)
}

/** Makes functions for the locked jobs of a lane. A lock lasts `lockMs`. */
export function createLocks(redis: Redis, { base, jobs }: QueueKeys, lane: Lane, lockMs: number) {
  const renew = openScript(redis, new URL('../bullmq-layout/jobs.lua#renew', import.meta.url))
  const shorten = openScript(redis, new URL('../bullmq-layout/jobs.lua#shorten', import.meta.url))
  const setAttempts = openScript(
    redis,
    new URL('../bullmq-layout/jobs.lua#attempts', import.meta.url),
  )
  const leases = [`lease:${lane}`, `lease:${lane}:looker`, 'operations-lease'].map(
    (key) => base + key,
  )
  return {
    renew: (locked: Iterable<LockedJob>): Promise<unknown> =>
      renew(jobs[lane], lockMs, ...[...locked].flatMap(({ id, token }) => [id, token])),
    setAttempts: ({ id, token }: LockedJob, attempts: number): Promise<unknown> =>
      setAttempts(jobs[lane], id, token, attempts),
    /**
     * Shortens locks and leases that last longer than `lockMs`. They were set by a clock of Redis
     * that was ahead, before it was moved back or before a failover, and would outlive their worker.
     */
    shorten: (): Promise<unknown> => shorten(jobs[lane], lockMs, ...leases),
  }
}

/**
 * An idle worker blocks for at most `BLOCK_MS`. If Redis has not replied `DEAD_MS` after that, the
 * connection counts as dead.
 */
const BLOCK_MS = 5_000
const DEAD_MS = 1_000
/** A worker that stops waits at most this long for a Redis that is unavailable. */
const STOP_MS = 500

/**
 * Opens a second connection to the server of `redis`, which blocks on BullMQ's marker: the marker
 * is set while jobs wait.
 */
export function createBlockingWait(redis: Redis, marker: string, onError: (error: Error) => void) {
  // A connection that died silently is replaced after this time, and ioredis sends its commands
  // again.
  const blocking = connectLike(redis, onError, BLOCK_MS + DEAD_MS)
  /** Redis's id of the connection, by which another connection can unblock it. */
  let clientId: Promise<number | undefined> | undefined
  blocking.on('close', () => {
    clientId = undefined
  })
  /** Resolves when Redis has replied to the commands of the current wait. */
  let replied: Promise<unknown> = Promise.resolve()
  /** Makes the current wait throw this error. */
  let endWait = (_error: Error) => {}

  async function unblock(): Promise<void> {
    const client = await clientId
    if (client === undefined) return
    await redis.client('UNBLOCK', client)
    await replied
  }

  return {
    redis: blocking,
    /**
     * Blocks until a job is added, until this time (ms since 1970), or for `BLOCK_MS`, and returns
     * the result of `then`. The command of `then` must use this connection: it is sent right behind
     * the blocking one, which saves a round trip.
     */
    async wait<Result>(until: number, then: () => Promise<Result>): Promise<Result> {
      const ms = Math.min(Math.max(until - Date.now(), 10), BLOCK_MS)
      clientId ??= blocking.client('ID').catch(() => undefined)
      const replies = Promise.all([clientId, blocking.bzpopmin(marker, ms / 1000), then()])
      replied = replies.catch(() => {})
      // If a connection is closed while it reconnects, ioredis never settles its commands, so
      // `stop` ends the wait.
      const stopped = Promise.withResolvers<never>()
      endWait = stopped.reject
      const [, , result] = await Promise.race([replies, stopped.promise])
      return result
    },
    /** Wakes another blocked worker, because this worker was woken but fetches nothing. */
    wakeAnother: () => redis.zadd(marker, 0, '0'),
    /**
     * Ends the current wait and closes the connection. It first unblocks the connection by its id:
     * Redis could otherwise fetch jobs for a closed connection, and they would wait until their
     * locks expire.
     */
    async stop(): Promise<void> {
      await Promise.race([unblock().catch(() => {}), delay(STOP_MS, undefined, { ref: false })])
      blocking.disconnect()
      endWait(new Error('the wait was stopped'))
    },
  }
}

export type Pauses = ReturnType<typeof createPauses>

/** Counts the open pauses of a process. Each lasts until its caller calls `resume`. */
export function createPauses() {
  let lasting = Promise.withResolvers<void>()
  lasting.resolve()
  const pauses = {
    open: 0,
    /** Resolves when all pauses have been resumed, or after `release`. */
    over: () => lasting.promise,
    /** A job runs alone, or waits for the other jobs to end. No other job may begin. */
    isRunningAlone: false,
    async pause(): Promise<void> {
      pauses.open += 1
      if (pauses.open === 1) lasting = Promise.withResolvers()
    },
    async resume(): Promise<void> {
      pauses.open -= 1
      if (pauses.open === 0) lasting.resolve()
    },
    /** Resolves `over` although pauses are open, because the process stops. */
    release: () => lasting.resolve(),
    /**
     * Runs the work of a job that may crash its worker, because a crash counts against every job
     * that the process has locked. Pauses fetching and waits for `othersDone` first. Do not call it
     * while `isRunningAlone`.
     */
    async runAlone<Result>(
      othersDone: () => Promise<unknown>,
      work: () => Promise<Result>,
    ): Promise<Result> {
      pauses.isRunningAlone = true
      try {
        await pauses.pause()
        await othersDone()
        return await work()
      } finally {
        pauses.isRunningAlone = false
        await pauses.resume()
      }
    },
  }
  return pauses
}
