// Fetches the jobs of one lane, runs each, and completes it.
import { setTimeout as delay } from 'node:timers/promises'
import { Job } from 'bullmq'
import type { IngestJob, Lane, LockedJob } from '../job/job.ts'
import { createLocks, openWorker } from './bullmq-worker.ts'
import { asError, failJob, putBack, startSweeps, tryJob } from './fail-job.ts'
import { countStored, createBlockingWait, createFetchJobs } from './fetch-and-complete.ts'
import type { Capacity, LaneDeps } from './lane-deps.ts'

/** A lock that is not renewed ends after this time. */
const LOCK_MS = 5_000
/** The most jobs that Redis fetches as a blocking wait ends. If the worker died, they wait until their locks expire. */
const MAX_AFTER_BLOCKING = 4
const FAILED_FETCH_MS = 500

/** Consumes a lane until `close` is called. Fetches as many waiting jobs as its capacity allows. */
export function consumeLane(lane: Lane, options: Omit<LaneDeps, 'find'>) {
  const { keys, redis, most, pauses, ready, onError } = options
  const worker = openWorker(keys, lane, redis, LOCK_MS).on('error', onError)
  const deps = { ...options, find: (id: string) => Job.fromId<IngestJob>(worker, id) }
  const blocking = createBlockingWait(redis, keys.markers[lane], onError)
  const fetchJobs = createFetchJobs(redis, keys, worker.id, LOCK_MS)
  const fetchWhenWoken = createFetchJobs(blocking.redis, keys, worker.id, LOCK_MS)
  const locks = createLocks(redis, keys, lane, LOCK_MS)
  // The connection may now lead to another server, whose clock may be behind: see `shorten`.
  redis.on('ready', () => locks.shorten().catch(onError))
  const stopSweeps = startSweeps(lane, deps)
  /** The locked jobs, with the times when they were locked, on the monotonic clock. */
  const locked = new Map<LockedJob, number>()
  /** The bytes of the next waiting job if it exceeded the capacity, else 0. */
  let misfit = 0
  let freed = Promise.withResolvers<void>()
  let fetches = 0
  let closing = false

  const lock = (job: LockedJob) => void locked.set(job, performance.now())

  async function runLocked(job: LockedJob): Promise<void> {
    await runJob(job, deps).catch((error) => onError(asError(error)))
    locked.delete(job)
    freed.resolve()
    freed = Promise.withResolvers()
  }

  const capacity = (jobs = most.jobs): Capacity => ({
    jobs: Math.min(most.jobs - locked.size, jobs),
    bytes: Math.max(most.bytes - [...locked.keys()].reduce((sum, { bytes }) => sum + bytes, 0), 0),
    isEmpty: locked.size === 0,
  })

  /** Returns whether the next job may be fetched. */
  function hasCapacity(): boolean {
    const { jobs, bytes, isEmpty } = capacity()
    return isEmpty || (jobs > 0 && bytes > 0 && bytes >= misfit)
  }

  /** @param wakeAt if present, blocks before it fetches: until a job is added or until this time, in ms since 1970. */
  async function fetch(wakeAt: number | undefined): Promise<{ fetched: number; nextAt: number | undefined }> {
    const token = `${worker.id}:${fetches++}`
    const fetchNow = () => fetchJobs(lane, token, capacity(), Date.now())
    const fetchFirst = () => fetchWhenWoken(lane, token, capacity(MAX_AFTER_BLOCKING))
    let found = wakeAt === undefined ? await fetchNow() : await blocking.wait(wakeAt, fetchFirst)
    while (found.lookAfterMs !== undefined) {
      await delay(found.lookAfterMs)
      if (closing || pauses.open > 0) {
        await blocking.wakeAnother()
        return { fetched: 0, nextAt: undefined }
      }
      found = await fetchNow()
    }
    const fetched = found.jobs
    fetched.forEach(lock)
    try {
      // Jobs that were added together with these should be stored in the same batch.
      if (wakeAt !== undefined && fetched.length === MAX_AFTER_BLOCKING) {
        found = await fetchNow()
        found.jobs.forEach(lock)
        fetched.push(...found.jobs)
      }
    } finally {
      for (const job of fetched) void runLocked(job)
    }
    misfit = found.misfit
    return { fetched: fetched.length, nextAt: found.nextAt }
  }

  async function keepFetching(): Promise<void> {
    await worker.startStalledCheckTimer()
    // If the last fetch drained the queue (it got one job or none), block until a job arrives.
    let wakeAt: number | undefined
    while (!closing) {
      try {
        await pauses.over()
        await ready(lane)
        while (!hasCapacity()) await freed.promise
        if (closing || pauses.open > 0) continue
        const { fetched, nextAt = Number.POSITIVE_INFINITY } = await fetch(wakeAt)
        wakeAt = fetched <= 1 ? nextAt : undefined
      } catch (error) {
        if (!closing) onError(asError(error))
        // The failed fetch may have used up the marker, and jobs may wait: do not block.
        wakeAt = undefined
        await delay(closing ? 0 : FAILED_FETCH_MS)
      }
    }
  }

  const renewal = setInterval(() => {
    if (locked.size > 0) locks.renew(locked.keys()).catch(onError)
  }, LOCK_MS / 2)
  const fetching = keepFetching()
  return {
    locked,
    /** Resolves when the lane runs no job but this one. */
    async othersDone(job: LockedJob): Promise<void> {
      while (locked.size > Number(locked.has(job))) await freed.promise
    },
    /** Stops fetching and waits for the locked jobs. Release all pauses, too: a paused lane does not notice the end. */
    async close(): Promise<void> {
      closing = true
      await Promise.all([blocking.stop(), fetching])
      while (locked.size > 0) await freed.promise
      clearInterval(renewal)
      stopSweeps()
      await worker.close()
    },
  }
}

/** Runs a locked job once, then completes it, fails it or puts it back. @throws without Redis: the lock expires. */
async function runJob(job: LockedJob, deps: LaneDeps): Promise<void> {
  if (deps.pauses.isExclusive) return putBack(job, deps)
  const tried = await tryJob(job, deps)
  if ('away' in tried) return putBack(job, deps)
  if ('failure' in tried) return failJob(job, tried, deps)
  try {
    await deps.complete({ ...job, result: { receipts: tried.receipts } })
  } catch (error) {
    return failJob(job, { failure: asError(error), final: false }, deps)
  }
  countStored(deps, job, tried.receipts)
}
