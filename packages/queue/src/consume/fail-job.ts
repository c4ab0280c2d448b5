// Handles attempts that failed or may crash their worker: the job is retried, returned, or fails
// permanently, and a job that may crash it runs alone. Also defines the dependencies of a lane.
import type { FailedThread } from '@sluice/contract'
import type { Job } from 'bullmq'
import type { Redis } from 'ioredis'
import type { createRecordAttempt } from '../failed/failed-set.ts'
import {
  attemptsShown,
  type CompletedJob,
  type FetchedJob,
  type IngestJob,
  type Lane,
  type LockedJob,
  MAX_ATTEMPTS,
  type Receipt,
  sourceNameOf,
} from '../job/job.ts'
import type { QueueKeys } from '../job/lanes.ts'
import { countStored, type StoredCounter } from './complete-jobs.ts'
import type { Capacity, createLocks } from './fetch-jobs.ts'

/**
 * The store is unavailable. The job is not at fault: it is returned to the waiting ones and loses
 * no attempt.
 */
export interface StoreUnavailable {
  unavailable: true
}

/**
 * The result of an attempt. If the work throws, the attempt has failed: the job gets another
 * attempt or fails permanently.
 */
export type Worked = { receipts: Receipt[] } | StoreUnavailable

export interface FailedAttempt {
  failure: Error
  final: boolean
}

/** The options of a consumer that its lanes need as well. */
export interface LaneOptions {
  keys: QueueKeys
  /**
   * A connection that retries. Each lane opens another one to the same server, for commands that
   * block.
   */
  redis: Redis
  /**
   * Resolves when this worker can process jobs of the lane. Until then, it fetches none and leaves
   * them to other workers.
   */
  ready: (lane: Lane) => Promise<void>
  work: (job: FetchedJob) => Promise<Worked>
  /**
   * Called before a job fails permanently. If it returns `StoreUnavailable`, the job is returned
   * instead. If it throws, the job fails nevertheless.
   */
  beforeFinalFailure: (job: FetchedJob) => Promise<StoreUnavailable | undefined>
  onFailed: (job: FetchedJob, failure: Error, final: boolean) => void
  stored: StoredCounter
  onError: (error: Error) => void
  /** Called for each new connection to Redis, before the worker fetches jobs by it. */
  onConnected: () => void
}

/** What each lane of a consumer needs. */
export interface LaneDeps extends LaneOptions {
  complete: (job: CompletedJob) => Promise<unknown>
  most: Pick<Capacity, 'jobs' | 'bytes'>
  /** Returns BullMQ's own object for a job. Only rare cases need it. */
  find: (id: string) => Promise<Job<IngestJob> | undefined>
  pauses: Pauses
  /** Resolves when the process runs no other job than this one. */
  othersDone: (job: LockedJob) => Promise<unknown>
  recordAttempt: ReturnType<typeof createRecordAttempt>
  setAttempts: ReturnType<typeof createLocks>['setAttempts']
}

/**
 * Some threads of a job were stored, and the others failed. The stack is the stack of the first
 * thread that failed.
 */
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

/** All threads of a job are stored, but Redis refuses to complete it. */
export class UncompletedError extends PartlyStoredError {
  override name = 'UncompletedError'

  constructor(receipts: readonly (Receipt | null)[], cause: Error) {
    super(
      `the threads are stored, but Redis refuses to complete the job: ${cause.message}`,
      [],
      receipts,
      cause,
    )
  }
}

/** After this number of crashes in `beforeFinalFailure`, a job fails without that handler. */
const MAX_HANDLER_CRASHES = 5

const LOST_ATTEMPT = `gave up after ${MAX_ATTEMPTS} attempts; the last one crashed or froze its worker`

/**
 * Runs a quarantined job alone. Redis counts the attempt before it begins and uncounts it when it
 * ends, so only a crash leaves it counted.
 */
export function runQuarantined(job: LockedJob, deps: LaneDeps): Promise<Worked | FailedAttempt> {
  async function runCounted(): Promise<Worked | FailedAttempt> {
    await deps.setAttempts(job, job.attempt)
    try {
      return await (job.attempt > MAX_ATTEMPTS
        ? judgeFailedAttempt(job, new Error(LOST_ATTEMPT), deps)
        : runOnce(job, deps))
    } finally {
      await deps.setAttempts(job, job.attempt - 1)
    }
  }
  return deps.pauses.runAlone(() => deps.othersDone(job), runCounted)
}

function runOnce(job: LockedJob, deps: LaneDeps): Promise<Worked | FailedAttempt> {
  return deps.work(job).catch((error) => judgeFailedAttempt(job, error, deps))
}

/**
 * Returns whether a failed attempt was the last one. Returns `StoreUnavailable` if the store is
 * unavailable.
 */
export async function judgeFailedAttempt(
  job: LockedJob,
  thrown: unknown,
  deps: LaneDeps,
): Promise<FailedAttempt | StoreUnavailable> {
  const failure = withReceipts(job, asError(thrown))
  if (job.attempt < MAX_ATTEMPTS) return { failure, final: false }
  try {
    const unavailable =
      job.attempt <= MAX_ATTEMPTS + MAX_HANDLER_CRASHES
        ? await deps.beforeFinalFailure(job)
        : undefined
    if (unavailable !== undefined) return unavailable
  } catch (error) {
    deps.onError(asError(error))
  }
  return { failure, final: true }
}

/**
 * Adds the receipts that the job has from before an operator retried it, because those threads stay
 * stored.
 */
function withReceipts({ data, receiptsBefore }: LockedJob, error: Error): Error {
  if (receiptsBefore === undefined || error instanceof PartlyStoredError) return error
  const failedThreads = data.threads.flatMap((thread, place) =>
    receiptsBefore[place] ? [] : { place, ...sourceNameOf(thread), reason: error.message },
  )
  return new PartlyStoredError(error.message, failedThreads, receiptsBefore, error)
}

/**
 * Returns a job to the waiting ones without counting an attempt: the store is unavailable, or
 * another job runs alone.
 */
export async function returnJob(
  { id, token, progress }: LockedJob,
  { find }: Pick<LaneDeps, 'find'>,
): Promise<void> {
  const job = await find(id)
  // A full Redis refuses to record the time. Return the job nevertheless.
  await job?.updateProgress({ ...progress, waitingSince: Date.now() }).catch(() => {})
  await job?.moveToWait(token)
}

/**
 * Records a failed attempt. If it is final, the job fails permanently. Otherwise BullMQ delays the
 * job.
 */
export async function failJob(
  locked: LockedJob,
  { failure, final }: FailedAttempt,
  deps: LaneDeps,
): Promise<void> {
  const job = await deps.find(locked.id)
  if (job === undefined) return
  const { message, stack = message } = failure
  // Some threads of a failed job may be stored.
  const partly = failure instanceof PartlyStoredError ? failure : undefined
  const receipts = partly?.receipts ?? locked.data.threads.map(() => null)
  // Keep at most `MAX_ATTEMPTS` stacks: a job may be retried by hand any number of times.
  const stacks = [...(job.stacktrace ?? []), stack].slice(-MAX_ATTEMPTS)
  job.opts.stackTraceLimit = MAX_ATTEMPTS
  const result = { receipts, failure: message }
  const ifFinal = final ? { progress: locked.progress, result, stacks } : undefined
  await deps.recordAttempt(locked, failure, partly?.failedThreads ?? [], ifFinal)
  if (!final) await job.moveToFailed(failure, locked.token)
  deps.onFailed({ ...locked, attempt: attemptsShown(locked.attempt) }, failure, final)
  if (final) countStored(deps.stored, locked, receipts)
  else await job.updateProgress({ ...locked.progress, waitingSince: Date.now() })
}

/** Converts a thrown value to an error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown))
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
