// Consumes the queue: fetches the jobs of both lanes, has each worked on, and completes it.
import { setTimeout as delay } from 'node:timers/promises'
import { Job } from 'bullmq'
import type { Redis } from 'ioredis'
import type { QueueKeys } from './bullmq-layout/names.ts'
import { completedJob, createComplete, type ResultBounds } from './complete.ts'
import { openWorker } from './connections.ts'
import { createExclusiveRun, type ExclusiveRun } from './exclusive-run.ts'
import {
  type Away,
  asError,
  countAsCrash,
  createRecordFailure,
  type FailDeps,
  type FailedTry,
  type FailureHandlers,
  failJob,
  lastTry,
  putBack,
} from './fail-job.ts'
import { createBlockingWait, createFetchJobs, type FetchedJob, fetchedByBullMQ, type LockedJob } from './fetch.ts'
import { type IngestJob, LANES, type Lane, TRIES } from './job.ts'
import type { Receipt } from './receipt.ts'

/** The result of working on a job. Throwing means another try. */
export type Worked = { receipts: Receipt[] } | Away

/** What is called for each job. */
interface JobHandlers extends FailureHandlers {
  work: (job: FetchedJob) => Promise<Worked>
}

/** What consuming a queue needs. */
export interface ConsumerOptions extends JobHandlers {
  keys: QueueKeys
  /** A connection that retries; each lane opens a blocking one like it. */
  redis: Redis
  resultBounds: ResultBounds
  /** How many bytes of Redis failed jobs may take. Beyond it, the oldest are evicted first. */
  failedBytes: number
  /** How many jobs of each lane this process locks at a time. */
  concurrency: Readonly<Record<Lane, number>>
  /** Resolves when the worker would work on jobs of this lane at once. Until then they wait in the queue, where every worker can fetch them. */
  ready: (lane: Lane) => Promise<void>
}

/** Fetches jobs until it is closed. */
export interface Consumer {
  /** Stops fetching until `resume` was called as often. A blocked connection may still get a few jobs. */
  pause(): Promise<void>
  resume(): Promise<void>
  /** Stops fetching and waits for the locked jobs, for at most so long (ms). The locks of the others expire, and other workers fetch them. */
  close(graceMs: number): Promise<void>
}

/** Starts to consume a queue. */
export function createConsumer(options: ConsumerOptions): Consumer {
  const { keys, redis, resultBounds, failedBytes, concurrency, ready } = options
  let pauses = 0
  let closing = false
  let resumed = Promise.withResolvers<void>()
  resumed.resolve()

  async function pause(): Promise<void> {
    pauses += 1
    if (pauses === 1) resumed = Promise.withResolvers()
  }
  async function resume(): Promise<void> {
    pauses -= 1
    if (pauses === 0) resumed.resolve()
  }

  const exclusiveRun = createExclusiveRun(pause, resume)
  const complete = createComplete(redis, keys, resultBounds)
  const recordFailure = createRecordFailure(redis, keys, failedBytes, options)
  const othersDone = (job: LockedJob) => Promise.all(lanes.map((lane) => lane.othersDone(job)))
  const lanes: LaneConsumer[] = LANES.map((lane) =>
    consumeLane(lane, {
      ...options,
      concurrency: concurrency[lane],
      complete,
      recordFailure,
      exclusiveRun,
      othersDone,
      async mayFetch() {
        await resumed.promise
        await ready(lane)
        return !closing && pauses === 0
      },
    }),
  )
  return {
    pause,
    resume,
    async close(graceMs) {
      closing = true
      resumed.resolve()
      const { promise: graceOver, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, graceMs)
      await Promise.race([Promise.all(lanes.map((lane) => lane.close())), graceOver])
      clearTimeout(timer)
    },
  }
}

/** What running a job needs. */
interface RunDeps extends FailDeps {
  work: JobHandlers['work']
  exclusiveRun: ExclusiveRun
  /** Resolves when the process runs no job but this one. */
  othersDone: (job: LockedJob) => Promise<unknown>
}

interface LaneOptions extends Omit<RunDeps, 'find'> {
  keys: QueueKeys
  redis: Redis
  concurrency: number
  /** Resolves when the lane should fetch; with false if it should not after all. */
  mayFetch: () => Promise<boolean>
}

interface LaneConsumer {
  /** Resolves when the lane runs no job but this one. */
  othersDone(job: LockedJob): Promise<void>
  close(): Promise<void>
}

/** How long a lock lasts unless it is renewed, in ms. */
const LOCK_MS = 5_000
/** Most jobs that Redis gives to a blocked connection: if the worker was paused or cut off meanwhile, they wait until their locks expire. */
const FETCHED_BLOCKED = 4
/** The pause after Redis has refused a fetch, in ms. */
const REFUSED_MS = 500

/**
 * Fetches and runs the jobs of one lane. BullMQ's own worker fetches one job at a time; this one fetches all that wait, as far as it has room. Delays,
 * failures and stalled jobs are rare, and left to BullMQ.
 */
function consumeLane(lane: Lane, options: LaneOptions): LaneConsumer {
  const { keys, redis, concurrency, mayFetch, onError } = options
  const worker = openWorker(keys, lane, redis, LOCK_MS, onError)
  const deps: RunDeps = { ...options, find: (id) => Job.fromId<IngestJob>(worker, id) }
  const blocking = createBlockingWait(redis, keys.markers[lane], onError)
  const fetchJobs = createFetchJobs(redis, keys, LOCK_MS)
  const fetchWhenWoken = createFetchJobs(blocking.redis, keys, LOCK_MS)
  const locked = new Set<LockedJob>()
  let freed = Promise.withResolvers<void>()
  let closing = false

  async function runLocked(job: LockedJob): Promise<void> {
    locked.add(job)
    await runJob(job, deps).catch((error) => onError(asError(error)))
    locked.delete(job)
    freed.resolve()
    freed = Promise.withResolvers()
  }

  let fetches = 0
  /** @param wakeAt blocks first, until a job is added or until this time, in ms since 1970. */
  async function fetch(wakeAt: number | undefined): Promise<{ fetched: number; nextAt?: number }> {
    const token = `${worker.id}:${fetches++}`
    const room = concurrency - locked.size
    const { jobs, special, ...others } =
      wakeAt === undefined
        ? await fetchJobs(lane, token, room, Date.now())
        : await blocking.wait(wakeAt, () => fetchWhenWoken(lane, token, Math.min(room, FETCHED_BLOCKED)))
    if (special) {
      const job = await worker.getNextJob(token, { block: false })
      if (job !== undefined) jobs.push(fetchedByBullMQ(job, lane, token))
    }
    for (const job of jobs) void runLocked(job)
    return { fetched: jobs.length, ...others }
  }

  async function keepFetching(): Promise<void> {
    await worker.startStalledCheckTimer()
    // If the last fetch drained the queue (it got one job or none), block until a job arrives.
    let wakeAt: number | undefined
    while (!closing) {
      try {
        const may = await mayFetch()
        while (locked.size >= concurrency) await freed.promise
        if (!may || closing) continue
        const { fetched, nextAt = Number.POSITIVE_INFINITY } = await fetch(wakeAt)
        wakeAt = fetched <= 1 ? nextAt : undefined
      } catch (error) {
        if (!closing) onError(asError(error))
        await delay(closing ? 0 : REFUSED_MS)
      }
    }
  }

  function renewLocks(): void {
    const jobs = [...locked]
    const [ids, tokens] = [jobs.map(({ id }) => id), jobs.map(({ token }) => token)]
    if (jobs.length > 0) worker.extendJobLocks(ids, tokens, LOCK_MS).catch(onError)
  }
  const renewal = setInterval(renewLocks, LOCK_MS / 2)

  const fetching = keepFetching()
  return {
    async othersDone(job) {
      while (locked.size > Number(locked.has(job))) await freed.promise
    },
    async close() {
      closing = true
      await Promise.all([blocking.stop(), fetching])
      while (locked.size > 0) await freed.promise
      clearInterval(renewal)
      await worker.close()
    },
  }
}

/**
 * Runs a locked job once and completes it. The job goes back to waiting, and loses no try, if the store is away or another job runs exclusively.
 *
 * @throws if Redis could not be reached: the job's lock expires, and another worker fetches it.
 */
async function runJob(job: LockedJob, deps: RunDeps): Promise<void> {
  const { find, complete, exclusiveRun } = deps
  if (exclusiveRun.isActive) return putBack(job, find)
  const tried = job.suspect ? await tryExclusively(job, deps) : await tryOnce(job, deps)
  if ('away' in tried) return putBack(job, find)
  if ('failure' in tried) return failJob(job, tried, deps)
  try {
    await complete(completedJob(job, { receipts: tried.receipts }, job.token))
  } catch (error) {
    await failJob(job, { failure: asError(error), final: false }, deps)
  }
}

function tryExclusively(job: LockedJob, deps: RunDeps): Promise<Worked | FailedTry> {
  const { exclusiveRun, othersDone, find } = deps
  return exclusiveRun.run(
    () => othersDone(job),
    () => countAsCrash(job, find, () => tryOnce(job, deps)),
  )
}

async function tryOnce(job: FetchedJob, handlers: JobHandlers): Promise<Worked | FailedTry> {
  if (job.attempt > TRIES) {
    const reason = `gave up after ${TRIES} tries; the last one crashed or froze its worker`
    return lastTry(job, new Error(reason), handlers)
  }
  try {
    return await handlers.work(job)
  } catch (error) {
    const failure = asError(error)
    return job.attempt < TRIES ? { failure, final: false } : lastTry(job, failure, handlers)
  }
}
