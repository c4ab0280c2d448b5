// Ends attempts: completes jobs that succeeded, and reads the list of recently completed ones. If
// an attempt failed, the job is retried, returned, or fails permanently; one that may crash its
// worker runs alone. Also defines the dependencies of a lane.
import type { FailedThread, Hit, Outcome } from '@sluice/contract'
import { createGroupCommit, traceIdOf } from '@sluice/process'
import { asList, isUnavailable, openScript } from '@sluice/process/redis'
import type { Job } from 'bullmq'
import type { Redis } from 'ioredis'
import type { createRecordAttempt } from '../failed/failed-set.ts'
import { createImports } from '../imports/imports.ts'
import {
  attemptsShown,
  type CompletedJob,
  countedOutcome,
  type FetchedJob,
  type IngestJob,
  type JobResult,
  type Lane,
  type LockedJob,
  MAX_ATTEMPTS,
  type Receipt,
  sourceNameOf,
} from '../job/job.ts'
import type { QueueKeys } from '../job/lanes.ts'
import { payloadToRetain } from '../purge/purge.ts'
import { createRecordClaims, type ResultBounds } from '../replies/results.ts'
import type { Capacity, createLocks, Pauses } from './fetch-jobs.ts'

/**
 * Makes a function that completes jobs. Jobs that are passed to it during a round trip are
 * completed together in the next one. If Redis refuses that, they are completed one by one, because
 * one of them may be the cause. Returns false if the job is left to another worker, because this one
 * has lost its lock.
 */
export function createComplete(
  redis: Redis,
  keys: QueueKeys,
  bounds: ResultBounds,
  worker: string,
) {
  const { retainedMs, transientMs, resultBytes, recentBytes, claimBytes } = bounds
  const completeJobs = openScript(redis, new URL('./complete.lua', import.meta.url))
  const { recordJob } = createImports(redis, keys)
  const recordClaims = createRecordClaims(redis, keys, claimBytes)
  /** Returns the ids of the jobs that are left to other workers. */
  async function completeAll(jobs: readonly CompletedJob[]): Promise<unknown[]> {
    if (jobs.some(({ data }) => data.import !== undefined)) await Promise.all(jobs.map(recordJob))
    if (jobs.some(({ data }) => data.claim !== undefined)) await recordClaims(jobs)
    const completed = jobs.map((job) => ({
      id: job.id,
      lane: keys.jobs[job.lane],
      token: job.token,
      attempt: job.attempt,
      tenant: job.data.tenant,
      retained: job.data.retained,
      stream: job.data.replyTo,
      operation: job.progress.operation,
      claim: job.data.claim,
      purged: job.data.purged,
      payload: payloadToRetain(job),
    }))
    const texts = jobs.flatMap((job) => [
      JSON.stringify(job.result),
      JSON.stringify(recentLine(job, worker)),
    ])
    const times = { retainedMs, transientMs, resultBytes, recentBytes }
    const ended = await completeJobs(keys.base, { ...times, jobs: completed }, ...texts)
    let [more, ...left] = asList(ended)
    while (more === 1) [more] = asList(await completeJobs(keys.base, { ...times, jobs: [] }))
    return left
  }
  const commit = createGroupCommit(async (jobs: CompletedJob[]) => {
    const [all] = await Promise.allSettled([completeAll(jobs)])
    if (all.status === 'fulfilled' || jobs.length === 1 || isUnavailable(all.reason))
      return jobs.map(() => all)
    return Promise.allSettled(jobs.map((job) => completeAll([job])))
  })
  return async (job: CompletedJob): Promise<boolean> => {
    const ended = await commit(job)
    if (ended.status === 'rejected') throw ended.reason
    return !ended.value.includes(job.id)
  }
}

interface StoredCounter {
  inc(labels: { outcome: Outcome }): void
}

/**
 * Counts the stored threads of a job. Leaves out threads that were stored, and so counted, before
 * an operator retried the job.
 */
export function countStored(
  stored: StoredCounter,
  { data, receiptsBefore }: Pick<LockedJob, 'data' | 'receiptsBefore'>,
  receipts: JobResult['receipts'],
): void {
  for (const [place, receipt] of receipts.entries()) {
    if (receipt && !receiptsBefore?.[place])
      stored.inc({ outcome: countedOutcome(data, place, receipt) })
  }
}

/** Makes the line about a completed job, a list of about 160 bytes. Times are in ms since 1970. */
function recentLine({ id, name, data, attempt, enqueuedAt, result }: CompletedJob, worker: string) {
  const counts: Record<Outcome, number> = { created: 0, updated: 0, unchanged: 0, deleted: 0 }
  for (const [place, receipt] of result.receipts.entries())
    if (receipt) counts[countedOutcome(data, place, receipt)] += 1
  const { tenant, threads, requestId, trace, keyId } = data
  const { created, updated, unchanged, deleted } = counts
  return [
    id,
    tenant,
    name,
    threads.length,
    requestId,
    data.import?.id ?? '',
    created,
    updated,
    unchanged,
    attempt,
    enqueuedAt,
    worker,
    trace ? traceIdOf(trace) : '',
    keyId,
    ...(deleted > 0 ? [deleted] : []),
  ] as const
}

/**
 * Reads a line about a completed job.
 * @param entry the id of the stream's entry, which begins with the time (ms).
 */
export function readRecent(entry: string, line: string): Hit {
  const fields: ReturnType<typeof recentLine> = JSON.parse(line)
  const [id, tenant, name, threads, requestId, importId, ...others] = fields
  const [created, updated, unchanged, attempts, enqueuedAt, worker, traceId, keyId, deleted] =
    others
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
    outcomes: { created, updated, unchanged, ...(deleted && { deleted }) },
    worker,
  }
}

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

interface FailedAttempt {
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
  /** Called if jobs could not be fetched, or one could not be ended. */
  onError: (error: Error) => void
  /** Called with each error of a connection, and of a command that is tried again. */
  onRedisError: (error: Error) => void
  /** Called for each new connection to Redis, before the worker fetches jobs by it. */
  onConnected: () => void
}

/** What each lane of a consumer needs. */
export interface LaneDeps extends LaneOptions {
  complete: (job: CompletedJob) => Promise<boolean>
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
        : deps.work(job).catch((error) => judgeFailedAttempt(job, error, deps)))
    } finally {
      await deps.setAttempts(job, job.attempt - 1)
    }
  }
  return deps.pauses.runAlone(() => deps.othersDone(job), runCounted)
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

const UNREADABLE = 'Sluice did not write the payload: another program added or changed this job'

/** Fails a job with an unreadable payload: see `readPayload`. BullMQ may be unable to parse it. */
export async function failUnreadable(locked: LockedJob, deps: LaneDeps): Promise<void> {
  const failure = new Error(UNREADABLE)
  const result = { receipts: [], failure: UNREADABLE }
  await deps.recordAttempt(locked, failure, [], { progress: locked.progress, result, stacks: [] })
  deps.onFailed(locked, failure, true)
}

/** Converts a thrown value to an error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown))
}
