// Consumes the queue: fetches the jobs of both lanes, runs each, and completes it. The lanes of a
// process pause and close together.
import { setTimeout as delay } from 'node:timers/promises'
import type { SeenProcess } from '@sluice/contract'
import { isUnavailable } from '@sluice/process/redis'
import { Job } from 'bullmq'
import {
  createRecordAttempt,
  type FailedSetOptions,
  readReceiptsBefore,
} from '../failed/failed-set.ts'
import { type IngestJob, LANES, type Lane, type LockedJob, PurgedError } from '../job/job.ts'
import { openWorker } from '../job/lanes.ts'
import type { ResultBounds } from '../replies/results.ts'
import {
  asError,
  countStored,
  createComplete,
  failJob,
  failUnreadable,
  judgeFailedAttempt,
  type LaneDeps,
  type LaneOptions,
  returnJob,
  runQuarantined,
  UncompletedError,
} from './end-jobs.ts'
import {
  type Capacity,
  createBlockingWait,
  createFetchJobs,
  createLocks,
  createPauses,
} from './fetch-jobs.ts'

export interface ConsumerOptions extends LaneOptions, ResultBounds, FailedSetOptions {
  /** The most jobs of each lane that this process locks at a time. */
  concurrency: Readonly<Record<Lane, number>>
  /**
   * The most bytes of jobs that this process locks. If a job is larger than its lane's share, the
   * lane locks it alone.
   */
  bytesInHand: number
}

export type Consumer = ReturnType<typeof createConsumer>

/**
 * Each lane's share of `bytesInHand`. If they had one bound together, a lane could use all of it,
 * and the other lane's jobs would wait.
 */
const BYTES_SHARE = { interactive: 0.75, bulk: 0.25 }

const SHOWN_NAME = 200

/** Starts to consume a queue. */
export function createConsumer(options: ConsumerOptions) {
  const { keys, redis, concurrency, bytesInHand } = options
  const complete = createComplete(redis, keys, options, options.name)
  const recordAttempt = createRecordAttempt(redis, keys, options)
  const othersDone = (job: LockedJob) => Promise.all(lanes.map((lane) => lane.othersDone(job)))
  const pauses = createPauses()
  const shared = { ...options, complete, recordAttempt, pauses, othersDone }
  const lanes: ReturnType<typeof consumeLane>[] = LANES.map((lane) => {
    const most = { jobs: concurrency[lane], bytes: bytesInHand * BYTES_SHARE[lane] }
    return consumeLane(lane, { ...shared, most })
  })

  return {
    /** Stops fetching until `resume` is called. A blocked connection may still get a few jobs. */
    pause: pauses.pause,
    resume: pauses.resume,
    /** Returns the jobs that this process has had locked for longer than `ms`. */
    lockedFor(ms: number): NonNullable<SeenProcess['slowJobs']> {
      const now = performance.now()
      const slow = lanes
        .flatMap(({ locked }) => [...locked])
        .filter(([, since]) => now - since > ms)
      return slow.map(([job, since]) => ({
        id: job.id,
        name: job.name.slice(0, SHOWN_NAME),
        activeMs: Math.round(now - since),
      }))
    },
    /**
     * Stops fetching, and waits at most `graceMs` for the locked jobs. Other workers get the rest
     * later.
     */
    async close(graceMs: number): Promise<void> {
      const closed = Promise.all(lanes.map((lane) => lane.close()))
      pauses.release()
      await Promise.race([closed, delay(graceMs, undefined, { ref: false })])
    },
  }
}

/** A lock that is not renewed ends after this time. */
const LOCK_MS = 5_000
/**
 * At most this number of jobs is fetched as a blocking wait ends. Redis locks them even if the
 * worker has just died, and they then wait until their locks expire: so there should be few.
 */
const MAX_AFTER_BLOCKING = 4
const FAILED_FETCH_MS = 500

/**
 * A lane is always in one of these modes. Locked jobs run in any mode.
 *
 * - `resting`, also after an error: waits until no pause is open, the worker is ready, and it has
 * capacity. The next mode is `blocking` if the last fetch drained the queue (got at most one job)
 * and no delayed job is due, otherwise `fetching`.
 * - `fetching`: fetches without waiting. The next mode is `looking` if it left jobs to the worker
 * with the lane's lease, otherwise `resting`.
 * - `blocking`: waits for a job, at most some seconds, and fetches. The next mode is the same as
 * after `fetching`.
 * - `looking`: waits until the lease ends. The next mode is `fetching`. If fetching was paused
 * during the wait, it wakes another worker and is `resting`.
 * - `closing`, after `close`: does not fetch any more.
 */
type Mode = 'resting' | 'fetching' | 'blocking' | 'looking' | 'closing'

/** What a fetch found, as far as the next fetch needs it. */
interface Found extends Omit<Awaited<ReturnType<ReturnType<typeof createFetchJobs>>>, 'jobs'> {
  isDrained: boolean
}
/**
 * What is assumed before the first fetch and after an error. Jobs may wait although the marker is
 * used up, so the next fetch must not block.
 */
const UNKNOWN: Found = { isDrained: false, misfit: 0, nextAt: undefined, lookAfterMs: undefined }

/**
 * A look in the lease's last millisecond would find it held, and nobody would look again. Redis
 * keeps a key throughout that millisecond, and a timer may fire one too early.
 */
const LEASE_ENDS_MS = 2

/** Consumes a lane until `close` is called. */
function consumeLane(lane: Lane, options: Omit<LaneDeps, 'find' | 'setAttempts'>) {
  const { keys, redis, most, pauses, ready, onRedisError, onConnected } = options
  const worker = openWorker(keys, lane, redis, LOCK_MS).on('error', onRedisError)
  const blocking = createBlockingWait(redis, keys.markers[lane], onRedisError)
  const locks = createLocks(redis, keys, lane, LOCK_MS)
  const shorten = () => void locks.shorten().catch(onRedisError)
  const fetchJobs = createFetchJobs(redis, keys, worker.id, LOCK_MS, shorten)
  const fetchWhenWoken = createFetchJobs(blocking.redis, keys, worker.id, LOCK_MS, shorten)
  const { setAttempts } = locks
  const deps = { ...options, setAttempts, find: (id: string) => Job.fromId<IngestJob>(worker, id) }
  // The connection may now lead to another server, whose clock may be behind: see `shorten`.
  redis.on('ready', shorten)
  for (const connection of [redis, blocking.redis]) connection.on('ready', onConnected)
  /** The locked jobs, with the times when they were locked, on the monotonic clock. */
  const locked = new Map<LockedJob, number>()
  let freed = Promise.withResolvers<void>()
  let fetches = 0
  let mode: Mode = 'resting'
  let last = UNKNOWN

  const capacity = (jobs = most.jobs): Capacity => ({
    jobs: Math.min(most.jobs - locked.size, jobs),
    bytes: Math.max(most.bytes - [...locked.keys()].reduce((sum, { bytes }) => sum + bytes, 0), 0),
    isEmpty: locked.size === 0,
  })

  function hasCapacity(): boolean {
    const { jobs, bytes, isEmpty } = capacity()
    return isEmpty || (jobs > 0 && bytes > 0 && bytes >= last.misfit)
  }

  async function runLocked(job: LockedJob): Promise<void> {
    const running = runJob(job, deps).catch((error) => {
      if (error instanceof PurgedError) return returnJob(job, deps)
      throw error
    })
    await running.catch((error) => options.onError(asError(error)))
    locked.delete(job)
    freed.resolve()
    freed = Promise.withResolvers()
  }

  const newToken = () => `${worker.id}:${fetches++}`
  const fetchNow = (token = newToken()) => fetchJobs(lane, token, capacity(), Date.now())

  function lock<Fetched extends { jobs: LockedJob[] }>(found: Fetched): Fetched {
    for (const job of found.jobs) locked.set(job, performance.now())
    return found
  }

  /** Runs the fetched jobs, and returns the next mode. */
  function run(jobs: readonly LockedJob[], found: Omit<Found, 'isDrained'>): Mode {
    for (const job of jobs) void runLocked(job)
    last = { ...found, isDrained: jobs.length <= 1 }
    return found.lookAfterMs === undefined ? 'resting' : 'looking'
  }

  const modes: Record<Exclude<Mode, 'closing'>, () => Promise<Mode>> = {
    async resting() {
      if (pauses.open > 0) await pauses.over()
      await ready(lane)
      while (!hasCapacity()) await freed.promise
      if (pauses.open > 0) return 'resting'
      // Redis's clock may be behind. Then only a fetch with our own time gets a job that is due.
      const isDue = last.nextAt !== undefined && last.nextAt <= Date.now()
      return last.isDrained && !isDue ? 'blocking' : 'fetching'
    },
    async fetching() {
      const found = lock(await fetchNow())
      return run(found.jobs, found)
    },
    async blocking() {
      const token = newToken()
      const fetchFew = () => fetchWhenWoken(lane, token, capacity(MAX_AFTER_BLOCKING))
      const few = lock(await blocking.wait(last.nextAt ?? Number.POSITIVE_INFINITY, fetchFew))
      if (few.jobs.length < MAX_AFTER_BLOCKING) return run(few.jobs, few)
      // More jobs may wait. They were added together with the fetched ones, so store them in the
      // same batch.
      const more = await fetchNow(token).catch((error) => {
        // The first jobs are locked already: run them without the others.
        run(few.jobs, few)
        throw error
      })
      return run([...few.jobs, ...lock(more).jobs], more)
    },
    async looking() {
      await delay((last.lookAfterMs ?? 0) + LEASE_ENDS_MS)
      if (mode === 'looking' && pauses.open === 0) return 'fetching'
      await blocking.wakeAnother()
      return 'resting'
    },
  }

  function enter(next: Mode): void {
    if (mode !== 'closing') mode = next
  }

  async function keepFetching(): Promise<void> {
    await worker.startStalledCheckTimer()
    while (mode !== 'closing') {
      const next = modes[mode]().catch(async (error): Promise<Mode> => {
        const failure = asError(error)
        const report = isUnavailable(failure) ? onRedisError : options.onError
        if (mode !== 'closing') report(failure)
        last = UNKNOWN
        await delay(FAILED_FETCH_MS)
        return 'resting'
      })
      enter(await next)
    }
  }

  const renewal = setInterval(() => {
    if (locked.size > 0) locks.renew(locked.keys()).catch(onRedisError)
  }, LOCK_MS / 2)
  const fetching = keepFetching()
  return {
    locked,
    /** Resolves when the lane runs no other job than this one. */
    async othersDone(job: LockedJob): Promise<void> {
      while (locked.size > Number(locked.has(job))) await freed.promise
    },
    /**
     * Stops fetching and waits for the locked jobs. Release all pauses as well, because a paused
     * lane does not notice that it was closed.
     */
    async close(): Promise<void> {
      enter('closing')
      await Promise.all([blocking.stop(), fetching])
      while (locked.size > 0) await freed.promise
      clearInterval(renewal)
      await worker.close()
    },
  }
}

/**
 * Runs a locked job once, then completes, fails or returns it.
 *
 * @throws while Redis is unavailable. Then the lock expires, and a worker fetches the job again.
 * @throws {PurgedError}
 */
async function runJob(job: LockedJob, deps: LaneDeps): Promise<void> {
  if (job.data.threads.length === 0) return failUnreadable(job, deps)
  if (deps.pauses.isRunningAlone) return returnJob(job, deps)
  if (job.progress.retriedAt !== undefined)
    job.receiptsBefore = await readReceiptsBefore(deps.redis, deps.keys.jobs[job.lane] + job.id)
  const onFailed = (error: unknown) => judgeFailedAttempt(job, error, deps)
  const result = await (job.quarantined
    ? runQuarantined(job, deps)
    : deps.work(job).catch(onFailed))
  if ('unavailable' in result) return returnJob(job, deps)
  if ('failure' in result) return failJob(job, result, deps)
  try {
    const hasEnded = await deps.complete({ ...job, result: { receipts: result.receipts } })
    if (hasEnded) countStored(deps.stored, job, result.receipts)
  } catch (error) {
    const refusal = asError(error)
    if (isUnavailable(refusal)) {
      deps.onRedisError(refusal)
      return returnJob(job, deps)
    }
    const failed = await onFailed(new UncompletedError(result.receipts, refusal))
    return 'unavailable' in failed ? returnJob(job, deps) : failJob(job, failed, deps)
  }
}
