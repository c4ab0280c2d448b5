// Fetches and locks jobs of a lane, at once or when the next job arrives. Completes jobs that succeeded: stores their
// results, sends them to the replicas that wait, and removes the jobs from the queue.
import { hash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Hit, Outcome, Thread } from '@sluice/contract'
import { createGroupCommit, traceIdOf } from '@sluice/process'
import { asList, connectLike, isUnavailable, openRedisClock, openScript } from '@sluice/process/redis'
import type { Redis } from 'ioredis'
import { createImports } from '../imports/imports.ts'
import type { CompletedJob, JobResult, Lane, LockedJob } from '../job/job.ts'
import { readProgress } from '../job/job.ts'
import type { QueueKeys } from '../job/lanes.ts'
import { createRecordClaims } from '../replies/claims.ts'
import type { ResultBounds } from '../replies/results.ts'

/** A worker's free capacity for jobs of one lane. */
export interface Capacity {
  jobs: number
  /** Of the jobs' data. */
  bytes: number
  /** The worker has no job of the lane, so it may fetch one that exceeds the bytes. */
  isEmpty: boolean
}

/**
 * A fetch ends at this number of bytes. A worker fetches jobs of the lane again only once all of the fetch are written,
 * so a larger fetch would delay the next jobs, even if their tenant has the turn.
 */
const FETCH_BYTES = { interactive: 1024 * 1024, bulk: 512 * 1024 }

/**
 * If at least this number of jobs waits, any worker fetches: a larger batch costs hardly less per thread. A bulk job
 * has about 50 threads.
 */
const PLENTY = { interactive: 50, bulk: 4 }

/**
 * Makes a function that fetches jobs of a lane and locks them for `lockMs`: see fetch.lua. `now` is in ms since 1970. Omit
 * it if Redis may run the command later.
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

/**
 * Makes a function that completes jobs. Jobs that gather during a round trip are completed in one step or, if Redis
 * refuses that, one by one: the cause may be one of them.
 */
export function createComplete(redis: Redis, keys: QueueKeys, bounds: ResultBounds, worker: string) {
  const { retainedMs, transientMs, resultBytes, recentBytes, claimBytes } = bounds
  const completeJobs = openScript(redis, new URL('./complete.lua', import.meta.url))
  const { recordJob } = createImports(redis, keys)
  const recordClaims = createRecordClaims(redis, keys, claimBytes)
  async function completeAll(jobs: readonly CompletedJob[]): Promise<void> {
    if (jobs.some(({ data }) => data.import !== undefined)) await Promise.all(jobs.map(recordJob))
    if (jobs.some(({ data }) => data.claim !== undefined)) await recordClaims(jobs)
    const completed = jobs.map(({ id, lane, token, attempt, data, progress: { operation } }) => {
      const { tenant, retained, replyTo: stream, claim } = data
      return { id, lane: keys.jobs[lane], token, attempt, tenant, retained, stream, operation, claim }
    })
    const texts = jobs.flatMap((job) => [JSON.stringify(job.result), JSON.stringify(factsOf(job, worker))])
    const times = { retainedMs, transientMs, resultBytes, recentBytes }
    let more = await completeJobs(keys.base, { ...times, jobs: completed }, ...texts)
    while (more === 1) more = await completeJobs(keys.base, { ...times, jobs: [] })
  }
  const commit = createGroupCommit(async (jobs: CompletedJob[]) => {
    const [all] = await Promise.allSettled([completeAll(jobs)])
    if (all.status === 'fulfilled' || jobs.length === 1 || isUnavailable(all.reason)) return jobs.map(() => all)
    return Promise.allSettled(jobs.map((job) => completeAll([job])))
  })
  return async (job: CompletedJob): Promise<void> => {
    const ended = await commit(job)
    if (ended.status === 'rejected') throw ended.reason
  }
}

/** What is listed of a completed job, in about 160 bytes. Times are in ms since 1970. */
function factsOf({ id, name, data, attempt, enqueuedAt, result }: CompletedJob, worker: string) {
  const counts: Record<Outcome, number> = { created: 0, updated: 0, unchanged: 0 }
  for (const receipt of result.receipts) if (receipt) counts[receipt.source.outcome] += 1
  const { tenant, threads, requestId, trace, keyId } = data
  const { created, updated, unchanged } = counts
  const ids = [id, tenant, name, threads.length, requestId, data.import?.id ?? ''] as const
  const facts = [created, updated, unchanged, attempt, enqueuedAt, worker] as const
  return [...ids, ...facts, trace ? traceIdOf(trace) : '', keyId] as const
}

/** Reads a line about a completed job. @param entry the id of its entry, which begins with the time (ms). */
export function readRecent(entry: string, line: string): Hit {
  const fields: ReturnType<typeof factsOf> = JSON.parse(line)
  const [id, tenant, name, threads, requestId, importId, ...facts] = fields
  const [created, updated, unchanged, attempts, enqueuedAt, worker, traceId, keyId] = facts
  return {
    kind: 'job',
    id,
    tenant,
    state: 'completed',
    name,
    threads,
    requestId,
    ...(keyId && { keyId }),
    ...(importId !== '' && { importId }),
    ...(traceId !== '' && { traceId }),
    acceptedAt: new Date(enqueuedAt).toISOString(),
    endedAt: new Date(Number.parseInt(entry, 10)).toISOString(),
    attempts,
    outcomes: { created, updated, unchanged },
    worker,
  }
}

export interface StoredCounter {
  inc(labels: { outcome: Outcome }): void
}

/** Counts the stored threads of a job, except those that were stored, and so counted, before an operator retried it. */
export function countStored(
  stored: StoredCounter,
  { receiptsBefore }: Pick<LockedJob, 'receiptsBefore'>,
  receipts: JobResult['receipts'],
): void {
  for (const [place, receipt] of receipts.entries()) {
    if (receipt && !receiptsBefore?.[place]) stored.inc({ outcome: receipt.source.outcome })
  }
}

/** An idle worker blocks for at most `BLOCK_MS`. After `DEAD_MS` more, its connection counts as dead. */
const BLOCK_MS = 5_000
const DEAD_MS = 1_000
/** A worker that stops waits no longer than this for a Redis that is unavailable. */
const STOP_MS = 500

/** Opens a second connection to the server of `redis`, to block on BullMQ's marker, which is set while jobs wait. */
export function createBlockingWait(redis: Redis, marker: string, onError: (error: Error) => void) {
  // After this time, a connection that died silently is replaced, and the new one sends the commands again.
  const blocking = connectLike(redis, onError, BLOCK_MS + DEAD_MS)
  let blocked: Promise<unknown> = Promise.resolve()
  let id: Promise<number | undefined> | undefined
  let cut = (_error: Error) => {}
  blocking.on('close', () => {
    id = undefined
  })

  async function unblock(): Promise<void> {
    const client = await id
    if (client === undefined) return
    await redis.client('UNBLOCK', client)
    await blocked
  }

  return {
    redis: blocking,
    /**
     * Blocks until a job is added, until this time (ms since 1970), or for `BLOCK_MS`, and returns the result of
     * `then`. The command of `then` must use this connection: it is sent at once, which saves a round trip.
     */
    async wait<Result>(until: number, then: () => Promise<Result>): Promise<Result> {
      const ms = Math.min(Math.max(until - Date.now(), 10), BLOCK_MS)
      id ??= blocking.client('ID').catch(() => undefined)
      const woken = Promise.all([id, blocking.bzpopmin(marker, ms / 1000), then()])
      blocked = woken.catch(() => {})
      // If a connection is cut while it reconnects, ioredis never settles its commands.
      const ended = Promise.withResolvers<never>()
      cut = ended.reject
      return (await Promise.race([woken, ended.promise]))[2]
    },
    /** Wakes another blocked worker, because this one was woken and fetches nothing. */
    wakeAnother: () => redis.zadd(marker, 0, '0'),
    /**
     * Ends the current wait, and closes the connection. Unblocks it first, by its id: jobs that Redis fetched for a cut
     * connection would wait until their locks expire.
     */
    async stop(): Promise<void> {
      await Promise.race([unblock().catch(() => {}), delay(STOP_MS, undefined, { ref: false })])
      blocking.disconnect()
      cut(new Error('the wait was stopped'))
    },
  }
}
