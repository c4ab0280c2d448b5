// Handles tries that failed or may crash their worker: the job is tried again, put back, or fails for good. Records
// final failures that a worker did not live to record.
import type { FailedThread } from '@sluice/contract'
import { asList, openScript } from '@sluice/process/redis'
import { UnrecoverableError } from 'bullmq'
import { readFailure } from '../failed/tries.ts'
import type { JobProgress, Lane, LockedJob, Receipt } from '../job/job.ts'
import { TRIES, triesShown } from '../job/job.ts'
import { countStored } from './fetch-and-complete.ts'
import type { Away, FailedTry, LaneDeps, Worked } from './lane-deps.ts'

/** Some threads of a job were stored, and the others failed. The stack is that of the first failed thread's error. */
export class PartlyStoredError extends Error {
  override name = 'PartlyStoredError'
  readonly failedThreads: readonly FailedThread[]
  readonly receipts: readonly (Receipt | null)[]

  constructor(
    message: string,
    failedThreads: readonly FailedThread[],
    receipts: readonly (Receipt | null)[],
    cause: Error | undefined,
  ) {
    super(message, { cause })
    if (cause?.stack !== undefined) this.stack = cause.stack
    this.failedThreads = failedThreads
    this.receipts = receipts
  }
}

/** After this number of crashes in `beforeFinalFailure`, a job fails without that handler. */
const MAX_HANDLER_CRASHES = 5

const LOST_TRY = `gave up after ${TRIES} tries; the last one crashed or froze its worker`

/** Tries a job. A suspect job, which may crash its worker, runs exclusively. */
export function tryJob(job: LockedJob, deps: LaneDeps): Promise<Worked | FailedTry> {
  if (!job.suspect) return tryOnce(job, deps)
  return deps.pauses.runExclusively(
    () => deps.othersDone(job),
    () => tryCounted(job, deps),
  )
}

function tryOnce(job: LockedJob, deps: LaneDeps): Promise<Worked | FailedTry> {
  if (job.attempt > TRIES) return handleFailedTry(job, new Error(LOST_TRY), deps)
  return deps.work(job).catch((error) => handleFailedTry(job, error, deps))
}

/** Counts a try as failed before it begins, and undoes that when the try ends. After a crash, the count stays. */
async function tryCounted(suspect: LockedJob, deps: LaneDeps): Promise<Worked | FailedTry> {
  await deps.setTries(suspect, suspect.attempt)
  try {
    return await tryOnce(suspect, deps)
  } finally {
    await deps.setTries(suspect, suspect.attempt - 1)
  }
}

/** Handles a failed try: the job gets another one or fails for good, unless the store is away: then returns `Away`. */
async function handleFailedTry(job: LockedJob, thrown: unknown, deps: LaneDeps): Promise<FailedTry | Away> {
  const failure = asError(thrown)
  if (job.attempt < TRIES) return { failure, final: false }
  try {
    const away = job.attempt <= TRIES + MAX_HANDLER_CRASHES ? await deps.beforeFinalFailure(job) : undefined
    if (away !== undefined) return away
  } catch (error) {
    deps.onError(asError(error))
  }
  return { failure, final: true }
}

/** Puts a job back to the waiting ones without counting a try: the store is away, or another job runs exclusively. */
export async function putBack({ id, token, progress }: LockedJob, { find }: Pick<LaneDeps, 'find'>): Promise<void> {
  const job = await find(id)
  // A full Redis refuses to record the time. The job goes back all the same.
  await job?.updateProgress({ ...progress, waitingSince: Date.now() }).catch(() => {})
  await job?.moveToWait(token)
}

/** Has BullMQ count a failed try, and records a final failure. If the worker dies between, `startSweeps` does. */
export async function failJob(locked: LockedJob, { failure, final }: FailedTry, deps: LaneDeps): Promise<void> {
  const job = await deps.find(locked.id)
  if (job === undefined) return
  // `JOB_OPTIONS` sets BullMQ's own bound of tries to the largest safe integer, so only this class of error is final.
  const { message, stack = message } = failure
  const reported = final ? Object.assign(new UnrecoverableError(message), { cause: failure, stack }) : failure
  // Bounds the stacks that BullMQ keeps: a job may be retried by hand again and again.
  job.opts.stackTraceLimit = TRIES
  // A job that failed may have stored some of its threads all the same.
  const partly = failure instanceof PartlyStoredError ? failure : undefined
  const receipts = partly?.receipts ?? locked.data.threads.map(() => null)
  const result = { receipts, failure: message }
  const ifFinal = final ? { progress: withCounted(locked.progress, receipts), result } : undefined
  await deps.recordTry(locked, failure, partly?.failedThreads ?? [], ifFinal)
  await job.moveToFailed(reported, locked.token)
  const failed = { ...locked, attempt: triesShown(job.attemptsMade) }
  const { finishedOn: failedAt } = job
  deps.onFailed(failed, failure, failedAt !== undefined)
  if (failedAt === undefined) return job.updateProgress({ ...locked.progress, waitingSince: Date.now() })
  countStored(deps, locked, receipts)
  await deps.recordFailure({ ...failed, failedAt, result })
}

/** Adds the threads with receipts to `counted`. Leaves out an empty array: Redis's cjson would make an object of it. */
function withCounted(progress: JobProgress, receipts: readonly (Receipt | null)[]): JobProgress {
  const counted = receipts.flatMap((receipt, place) => (receipt || progress.counted?.includes(place) ? place : []))
  return counted.length > 0 ? { ...progress, counted } : progress
}

/** Converts a thrown value, which can be anything, to an error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown))
}

/** How often a worker looks for final failures that were not recorded. */
const SWEEP_EVERY_MS = 5_000
/** The failed jobs that one sweep examines, in less than a millisecond. */
const SWEPT_AT_ONCE = 500
/** A younger failure is left to its worker. An older one may be recorded twice if the worker is slow: no harm. */
const OVERDUE_MS = 5_000

/**
 * Examines failed jobs of a lane, some at a time, until the returned function is called. Records final failures that a
 * dead worker left unrecorded: without a result, imports and callers wait, and the job counts as load for ever.
 */
export function startSweeps(lane: Lane, { keys, redis, find, recordFailure, onError }: LaneDeps): () => void {
  const findUnrecorded = openScript(redis, new URL('../failed/failed-set.lua#unrecorded', import.meta.url))
  let cursor = '0'

  async function finish(id: string): Promise<void> {
    const { data, finishedOn: failedAt, failedReason: failure = '' } = (await find(id)) ?? {}
    // The job was retried or removed meanwhile.
    if (data === undefined || failedAt === undefined) return
    const result = await readFailure(redis, keys.jobs[lane] + id)
    const nothingStored = { receipts: data.threads.map(() => null), failure }
    await recordFailure({ id, lane, data, failedAt, result: result ?? nothingStored })
  }

  async function sweep(): Promise<void> {
    const reply = await findUnrecorded(keys.base, keys.jobs[lane], cursor, SWEPT_AT_ONCE, OVERDUE_MS)
    const [next, ids] = asList(reply)
    for (const id of asList(ids)) await finish(String(id))
    cursor = String(next)
  }

  const timer = setInterval(() => void sweep().catch(onError), SWEEP_EVERY_MS)
  return () => clearInterval(timer)
}
