// Handles tries that failed or may crash their worker: the job is tried again, put back, or fails for good.
import type { FailedThread } from '@sluice/contract'
import type { JobProgress, LockedJob, Receipt } from '../job/job.ts'
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

/** Records a failed try. A final one fails the job for good; after another one, BullMQ delays the job. */
export async function failJob(locked: LockedJob, { failure, final }: FailedTry, deps: LaneDeps): Promise<void> {
  const job = await deps.find(locked.id)
  if (job === undefined) return
  const { message, stack = message } = failure
  // A job that failed may have stored some of its threads all the same.
  const partly = failure instanceof PartlyStoredError ? failure : undefined
  const receipts = partly?.receipts ?? locked.data.threads.map(() => null)
  // Bounds the stacks that BullMQ keeps: a job may be retried by hand again and again.
  const stacks = [...(job.stacktrace ?? []), stack].slice(-TRIES)
  job.opts.stackTraceLimit = TRIES
  const result = { receipts, failure: message }
  const ifFinal = final ? { progress: withCounted(locked.progress, receipts), result, stacks } : undefined
  await deps.recordTry(locked, failure, partly?.failedThreads ?? [], ifFinal)
  if (!final) await job.moveToFailed(failure, locked.token)
  deps.onFailed({ ...locked, attempt: triesShown(locked.attempt) }, failure, final)
  if (final) countStored(deps, locked, receipts)
  else await job.updateProgress({ ...locked.progress, waitingSince: Date.now() })
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
