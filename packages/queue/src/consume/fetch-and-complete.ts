// Fetches jobs of a lane and locks them, at once or as soon as the next one arrives, and completes them: stores and
// replies their results, and removes those that succeeded from the queue.
import { hash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { QueueKeys } from '../bullmq-layout/queue-keys.ts'
import { recentLine } from '../find/recent.ts'
import { createImports } from '../imports/imports.ts'
import type { CompletedJob, JobHistory, JobResult, Lane, LockedJob } from '../job/job.ts'
import { jobProgressOf, readHistory, triesMade } from '../job/job.ts'
import { connectLike } from '../redis/redis-connections.ts'
import { asList, createGroupCommit, openScript } from '../redis/script.ts'
import { createRecordClaims } from '../replies/claims.ts'
import type { ResultBounds } from '../replies/results.ts'
import type { Capacity, LaneOptions } from './lane-deps.ts'

/**
 * A fetch ends at this number of bytes: a larger one would block Redis. Interactive jobs that arrive wait until what was
 * fetched is written, even if it is their tenant's turn.
 */
const FETCH_BYTES = { interactive: 1024 * 1024, bulk: 512 * 1024 }

/** If as many jobs wait, any worker fetches: a larger batch is hardly cheaper. A bulk job has some fifty threads. */
const PLENTY = { interactive: 50, bulk: 4 }

/**
 * Makes a function by which a worker fetches jobs within a capacity, and locks them for `lockMs`, unless another worker
 * has the lane's lease: see fetch.lua. Its `now` is in ms since 1970; none if Redis runs the command later.
 */
export function createFetchJobs(redis: Redis, { base, jobs: laneKeys }: QueueKeys, worker: string, lockMs: number) {
  const fetchJobs = openScript(redis, new URL('./fetch.lua', import.meta.url))
  return async (lane: Lane, token: string, capacity: Capacity, now?: number) => {
    const bounds = [capacity.jobs, FETCH_BYTES[lane], capacity.bytes, Number(capacity.isEmpty)]
    const lease = [`${base}lease:${lane}`, worker, PLENTY[lane]]
    const reply = await fetchJobs(laneKeys[lane], base, token, lockMs, now ?? '', ...bounds, ...lease)
    const [obstacle, due, misfit, jobs, lookAfterMs] = asList(reply)
    return {
      jobs: asList(jobs).map((fields) => readJob(lane, token, asList(fields))),
      /** Only BullMQ can fetch the next job: see `obstacleOf` in jobs.lua. */
      needsBullMQ: obstacle === 'bullmq',
      /** The bytes of the next job, if it exceeded the capacity. */
      misfit: Number(misfit),
      /** When the next delayed job is due, in ms since 1970. */
      nextAt: Number(due) || undefined,
      /** Jobs were left to another worker, and this one must look again after this time. */
      lookAfterMs: Number(lookAfterMs) || undefined,
    }
  }
}

function readJob(lane: Lane, token: string, fields: readonly unknown[]): LockedJob {
  const [data, timestamp, started, made, stalled, progress, name, id] = fields
  const facts = { id: String(id), name: String(name), lane, token }
  const delivery = { ...facts, enqueuedAt: Number(timestamp), redelivered: Number(started) > 1 }
  return lockedJob(String(data), delivery, readHistory(made, stalled, progress))
}

type Delivery = Pick<LockedJob, 'id' | 'name' | 'lane' | 'token' | 'enqueuedAt' | 'redelivered'>

/** Describes a job that was fetched and locked. @param text its data. */
export function lockedJob(text: string, delivery: Delivery, history: JobHistory): LockedJob {
  const data: LockedJob['data'] = JSON.parse(text)
  const content = { data, digests: digestsOf(data, text), bytes: Buffer.byteLength(text) }
  const suspect = history.stalledCounter > 0
  return { ...delivery, ...content, attempt: triesMade(history) + 1, suspect, progress: jobProgressOf(history) }
}

/** A job's threads are its last field: see `jobEntry`. JSON strings escape quotation marks. */
const THREADS = '"threads":'

/** Identifies the content of each thread of a job. A thread has the same digest in any job. */
function digestsOf({ threads }: LockedJob['data'], text: string): string[] {
  const isAlone = threads.length === 1
  const texts = isAlone
    ? [text.slice(text.indexOf(THREADS) + THREADS.length, -1)]
    : threads.map((thread) => JSON.stringify([thread]))
  // 144 bits, as in ids.
  return texts.map((content) => hash('sha256', content, 'base64url').slice(0, 24))
}

/**
 * Makes a function that completes a job together with others, in one step, and then evicts results beyond their bounds,
 * in further steps.
 *
 * @param worker names this process in the list of completed jobs.
 */
export function createComplete(redis: Redis, keys: QueueKeys, bounds: ResultBounds, worker: string) {
  const { retainedMs, transientMs, resultBytes, recentBytes, claimBytes } = bounds
  const completeJobs = openScript(redis, new URL('./complete.lua', import.meta.url))
  const { recordJob } = createImports(redis, keys)
  const recordClaims = createRecordClaims(redis, keys, claimBytes)
  return createGroupCommit(async (jobs: CompletedJob[]) => {
    if (jobs.some(({ data }) => data.import !== undefined)) await Promise.all(jobs.map(recordJob))
    if (jobs.some(({ data }) => data.claim !== undefined)) await recordClaims(jobs)
    let args = jobs.flatMap((job) => {
      const { id, lane, token, attempt, result, data } = job
      const about = [Number(data.retained), attempt, data.replyTo ?? '', JSON.stringify(result)]
      return [id, keys.jobs[lane], token, ...about, recentLine(job, worker), data.tenant]
    })
    while ((await completeJobs(keys.base, retainedMs, transientMs, resultBytes, recentBytes, ...args)) === 1) args = []
    return jobs
  })
}

/** Counts the threads of a job that were stored, and did not count when the job failed before. */
export function countStored({ stored }: LaneOptions, { progress }: LockedJob, receipts: JobResult['receipts']): void {
  for (const [place, receipt] of receipts.entries()) {
    if (receipt && !progress.counted?.includes(place)) stored.inc({ outcome: receipt.source.outcome })
  }
}

/** An idle worker blocks for at most `BLOCK_MS`. After `DEAD_MS` more, its connection counts as dead. */
const BLOCK_MS = 5_000
const DEAD_MS = 1_000
/** A worker that stops waits no longer than this for a Redis that is away, in ms. */
const STOP_MS = 500

/** Opens a connection like `redis`, which retries, that blocks on BullMQ's marker, which is set while jobs wait. */
export function createBlockingWait(redis: Redis, marker: string, onError: (error: Error) => void) {
  // A connection that died silently would block for ever; a new one sends the commands again.
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
     * `then`, whose command must use the same connection: it is sent at once, which saves a single job a round trip.
     */
    async wait<Result>(until: number, then: () => Promise<Result>): Promise<Result> {
      const ms = Math.min(Math.max(until - Date.now(), 10), BLOCK_MS)
      // If Redis does not return the id, stopping may delay a job that arrives at this very moment by a few seconds.
      id ??= blocking.client('ID').catch(() => undefined)
      const woken = Promise.all([id, blocking.bzpopmin(marker, ms / 1000), then()])
      blocked = woken.catch(() => {})
      // A connection that is cut while it reconnects never settles its commands.
      const ended = Promise.withResolvers<never>()
      cut = ended.reject
      return (await Promise.race([woken, ended.promise]))[2]
    },
    /** Wakes another blocked worker, because this one was woken and fetches nothing. */
    wakeAnother: () => redis.zadd(marker, 0, '0'),
    /** Ends the wait for good. Resolves when the connection is no longer needed. */
    async stop(): Promise<void> {
      // Jobs that Redis fetches for a connection that is cut would wait for their locks to expire, so the wait is
      // unblocked first.
      await Promise.race([unblock().catch(() => {}), delay(STOP_MS, undefined, { ref: false })])
      blocking.disconnect()
      cut(new Error('the wait was stopped'))
    },
  }
}
