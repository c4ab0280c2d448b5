// Handles tries that did not succeed, or may crash their worker: try again, put back, or fail for good.
import { type Job, UnrecoverableError } from 'bullmq'
import type { Redis } from 'ioredis'
import { openQueue, type QueueKeys } from '../bullmq-layout/queue-keys.ts'
import {
  allTries,
  type CompletedJob,
  FAILED_KEPT_S,
  type FetchedJob,
  type IngestJob,
  jobProgressOf,
  LANES,
  type LockedJob,
  type Receipt,
  TRIES,
  triesMade,
} from '../job/job.ts'
import { loadScript } from '../redis/script.ts'
import { completedJob } from './complete.ts'
import type { ExclusiveRun } from './exclusive-run.ts'

/** The store is away. Nothing is wrong with the job: it goes back to waiting and loses no try. */
export interface Away {
  away: true
}

/** The result of working on a job. Throwing means another try. */
export type Worked = { receipts: Receipt[] } | Away

/** A try that failed. `final`: the job gets no other one. */
export interface FailedTry {
  failure: Error
  final: boolean
}

/** Handlers of failures. */
export interface FailureHandlers {
  /**
   * Is awaited before a job fails for good. If the store is away, the job goes back to waiting and loses no try. If it
   * throws, the error is reported and the job fails all the same.
   */
  beforeFinalFailure: (job: FetchedJob) => Promise<Away | undefined>
  onFailed: (job: FetchedJob, reason: string, final: boolean) => void
  /** Receives the id of a failed job that was removed because failed jobs exceed their bound. */
  onEvicted: (jobId: string) => void
  onError: (error: Error) => void
}

/** The handlers of each job. */
export interface JobHandlers extends FailureHandlers {
  work: (job: FetchedJob) => Promise<Worked>
}

/** Some of a job's threads could not be stored; the others were. */
export class PartlyStoredError extends Error {
  readonly receipts: (Receipt | null)[]

  constructor(reason: string, receipts: (Receipt | null)[]) {
    super(reason)
    this.name = 'PartlyStoredError'
    this.receipts = receipts
  }
}

/** Returns BullMQ's own view of a job. Only rare cases need it. */
type FindJob = (id: string) => Promise<Job<IngestJob> | undefined>

/** After this number of crashes in `beforeFinalFailure`, a job fails without that handler. */
const MAX_HANDLER_CRASHES = 5

/** Handles a try that threw: the job gets another try, or fails for good. */
export async function handleFailedTry(
  job: FetchedJob,
  thrown: unknown,
  handlers: FailureHandlers,
): Promise<FailedTry | Away> {
  const failure = asError(thrown)
  return job.attempt < TRIES ? { failure, final: false } : runFinalFailureHandler(job, failure, handlers)
}

/** Handles a job whose last try crashed or froze its worker: the job fails for good. */
function handleLostTry(job: FetchedJob, handlers: FailureHandlers): Promise<FailedTry | Away> {
  const reason = `gave up after ${TRIES} tries; the last one crashed or froze its worker`
  return runFinalFailureHandler(job, new Error(reason), handlers)
}

/** Runs `beforeFinalFailure`. The job then fails for good, unless the store is away. */
async function runFinalFailureHandler(
  job: FetchedJob,
  failure: Error,
  { beforeFinalFailure, onError }: FailureHandlers,
): Promise<FailedTry | Away> {
  try {
    const away = job.attempt <= TRIES + MAX_HANDLER_CRASHES ? await beforeFinalFailure(job) : undefined
    if (away !== undefined) return away
  } catch (error) {
    onError(asError(error))
  }
  return { failure, final: true }
}

/** Tries a job that may crash its worker: exclusively, and counted as a crash until the try ends. */
export function tryWithCare(suspect: LockedJob, deps: FailDeps): Promise<Worked | FailedTry> {
  const { exclusiveRun, othersDone, find, work } = deps
  async function tryOnce(): Promise<Worked | FailedTry> {
    if (suspect.attempt > TRIES) return handleLostTry(suspect, deps)
    return work(suspect).catch((error) => handleFailedTry(suspect, error, deps))
  }
  async function tryCounted(): Promise<Worked | FailedTry> {
    const { crashes = 0, ...others } = suspect.progress
    const job = await find(suspect.id)
    await job?.updateProgress({ ...others, crashes: crashes + 1 })
    try {
      return await tryOnce()
    } finally {
      await job?.updateProgress({ ...others, crashes })
    }
  }
  return suspect.suspect ? exclusiveRun.run(() => othersDone(suspect), tryCounted) : tryOnce()
}

/** Handles a try that failed, or that is not counted: the store is away or another job runs exclusively. */
export function handleUndone(job: LockedJob, tried: Away | FailedTry, deps: FailDeps): Promise<void> {
  return 'away' in tried ? putBack(job, deps.find) : failJob(job, tried, deps)
}

/** Returns a job to the waiting ones; it loses no try. */
async function putBack({ id, token, progress }: LockedJob, find: FindJob): Promise<void> {
  const job = await find(id)
  // A full Redis refuses to record the time. The job goes back all the same.
  await job?.updateProgress({ ...progress, waitingSince: Date.now() }).catch(() => {})
  await job?.moveToWait(token)
}

/** The dependencies of the tries of a job. */
export interface FailDeps extends JobHandlers {
  find: FindJob
  exclusiveRun: ExclusiveRun
  /** Resolves when the process runs no job but this one. */
  othersDone: (job: LockedJob) => Promise<unknown>
  complete: (job: CompletedJob) => Promise<unknown>
  recordFailure: (job: FetchedJob) => Promise<void>
}

/** Lets BullMQ count a failed try. After a final one, completes the job as failed. */
export async function failJob(locked: LockedJob, { failure, final }: FailedTry, deps: FailDeps): Promise<void> {
  const job = await deps.find(locked.id)
  if (job === undefined) return
  // BullMQ's own bound of tries is never reached, because it counts failed tries and crashes separately.
  const { stack = failure.message } = failure
  const reported = final ? Object.assign(new UnrecoverableError(failure.message), { cause: failure, stack }) : failure
  // Otherwise BullMQ would keep the stack of every try, also of a job that is retried by hand again and again.
  job.opts.stackTraceLimit = TRIES
  await job.moveToFailed(reported, locked.token)
  const failed = { ...locked, attempt: Math.min(triesMade(job), TRIES) }
  const hasFailed = job.finishedOn !== undefined
  deps.onFailed(failed, failure.message, hasFailed)
  if (hasFailed) {
    await deps.recordFailure(failed)
    await deps.complete(completedJob(failed, { receipts: receiptsOf(failure, failed), failure: failure.message }))
  }
  const change = hasFailed ? { tries: failed.attempt, earlier: allTries(job) } : { waitingSince: Date.now() }
  await job.updateProgress({ ...jobProgressOf(job), ...change })
}

/** A job that failed may have stored some of its threads all the same. */
function receiptsOf(failure: Error, { data }: FetchedJob): (Receipt | null)[] {
  return failure instanceof PartlyStoredError ? failure.receipts : data.threads.map(() => null)
}

const recordScript = loadScript(new URL('../failed/failed-set.lua#record', import.meta.url))

/**
 * Makes a function that records a failed job and evicts the oldest ones beyond their bound. A job that was retried
 * meanwhile stays.
 *
 * @param failedBytes the most bytes of Redis for all failed jobs, as BullMQ keeps them.
 */
export function createRecordFailure(
  redis: Redis,
  keys: QueueKeys,
  failedBytes: number,
  { onEvicted, onError }: Pick<FailureHandlers, 'onEvicted' | 'onError'>,
): (job: Pick<FetchedJob, 'id' | 'lane'>) => Promise<void> {
  const run = recordScript(redis)
  const queues = LANES.map((lane) => openQueue(keys, lane, redis))
  async function evict(id: string): Promise<void> {
    for (const queue of queues) {
      const job = await queue.getJob(id)
      if ((await job?.isFailed()) === true) await job?.remove()
    }
  }
  /** Records a job, or none. Returns the ids of jobs to evict. */
  async function record(lane: string, id: string): Promise<string[]> {
    const excess = await run(keys.base, lane, FAILED_KEPT_S * 1000, failedBytes, id)
    return Array.isArray(excess) ? excess.map(String) : []
  }
  return async ({ id, lane }) => {
    for (let excess = await record(keys.jobs[lane], id); excess.length > 0; excess = await record('', '')) {
      for (const evicted of excess) {
        onEvicted(evicted)
        await evict(evicted).catch((error) => onError(asError(error)))
      }
    }
  }
}

/** Converts a thrown value, which can be anything, to an error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown))
}
