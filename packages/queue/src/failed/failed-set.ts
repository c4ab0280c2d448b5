// Records failed attempts, fails jobs permanently, and retries or discards failed jobs.
import type { FailedThread, OperationKind, RecordedAttempt } from '@sluice/contract'
import { asList, openScript } from '@sluice/process/redis'
import type { Redis } from 'ioredis'
import { importBounds, progressOf } from '../imports/imports.ts'
import {
  type JobProgress,
  type JobResult,
  type LockedJob,
  MAX_ATTEMPTS,
  PurgedError,
} from '../job/job.ts'
import type { QueueKeys } from '../job/lanes.ts'

export interface FailedSetOptions {
  /** Names this process in the failed attempts of a job, and in the list of completed jobs. */
  name: string
  /**
   * The most bytes of Redis that failed jobs may use. Above this bound, the oldest are evicted
   * first.
   */
  failedBytes: number
  /** Called with the id of each failed job that was evicted. */
  onEvicted: (jobId: string) => void
  onError: (error: Error) => void
}

/** What a final failure stores with the job. */
interface FinalFailure {
  result: JobResult
  progress: JobProgress
  /** The stacks of its failed attempts, as BullMQ keeps them. */
  stacks: readonly string[]
}

const FAILED_KEPT_MS = 30 * 24 * 60 * 60 * 1000
/**
 * Bounds a reason in `tries` and `failedThreads`. BullMQ's own field has the whole reason of the
 * last attempt.
 */
const REASON_CHARACTERS = 300
/**
 * Bounds the bytes of `tries` and of `failedThreads`. Above it, the oldest attempts and the last
 * threads are left out.
 */
const FIELD_BYTES = 4_096

/** The failed threads of a job, as far as they fit, and their number. */
interface FailedThreads {
  count: number
  threads: FailedThread[]
}

/**
 * Makes a function that records a failed attempt of a locked job, and the threads that failed. With
 * `final`, the same step fails the job permanently. Without `final`, the caller must let BullMQ
 * count the attempt. Each call also evicts the oldest failed jobs above their bound.
 *
 * @throws if this worker has lost the lock, or {PurgedError}. Then nothing changes.
 */
export function createRecordAttempt(
  redis: Redis,
  keys: QueueKeys,
  { name: worker, ...options }: FailedSetOptions,
) {
  const { base, jobs } = keys
  const record = openScript(redis, new URL('./failed-set.lua#attempt', import.meta.url))
  const lanes = [jobs.interactive, jobs.bulk]
  const bounds = {
    keptMs: FAILED_KEPT_MS,
    bytes: options.failedBytes,
    lanes,
    imports: importBounds(),
  }
  return async (
    { id, lane, token, data }: Pick<LockedJob, 'id' | 'lane' | 'token' | 'data'>,
    { message }: Error,
    failed: readonly FailedThread[],
    final?: FinalFailure,
  ): Promise<void> => {
    const attempt: RecordedAttempt = {
      at: new Date().toISOString(),
      worker,
      reason: shortened(message),
    }
    // An error of the whole job does not name its threads.
    const count =
      final?.result.receipts.filter((receipt) => receipt === null).length ?? failed.length
    const job = {
      id,
      lane: jobs[lane],
      token,
      purged: data.purged,
      most: FIELD_BYTES,
      attempt: JSON.stringify(attempt),
      // If the payload is unreadable, all threads failed, and only the load has their number.
      failedThreads:
        final?.result.receipts.length === 0 ? '' : JSON.stringify(fitting(failed, count)),
      final: final && finalOf(id, data, final),
    }
    let input: object = { ...bounds, job }
    for (let more: unknown = 1; more === 1; input = bounds) {
      const [isLocked, next, evicted, refused] = asList(await record(base, input))
      if (isLocked === 0) throw new Error(`the lock of job ${id} is lost`)
      if (isLocked === 2) throw new PurgedError(id)
      for (const one of asList(evicted)) options.onEvicted(String(one))
      for (const reason of asList(refused))
        options.onError(new Error(`job ${id} failed, not recorded: ${reason}`))
      more = next
    }
  }
}

function finalOf(id: string, data: LockedJob['data'], { result, progress, stacks }: FinalFailure) {
  const { tenant, replyTo: stream, import: { id: ofImport } = {} } = data
  return {
    tenant,
    stream,
    operation: progress.operation,
    reason: result.failure ?? '',
    result: JSON.stringify(result),
    progress: JSON.stringify(progress),
    stacks: JSON.stringify(stacks),
    ...(ofImport !== undefined && {
      import: ofImport,
      outcome: progressOf({ id, data, result }),
    }),
  }
}

function fitting(failed: readonly FailedThread[], count: number): FailedThreads {
  const fit: FailedThreads = { count, threads: [] }
  let bytes = 0
  for (const { reason, ...thread } of failed) {
    const short = { ...thread, reason: shortened(reason) }
    bytes += Buffer.byteLength(JSON.stringify(short)) + 1
    if (bytes > FIELD_BYTES) break
    fit.threads.push(short)
  }
  return fit
}

function shortened(reason: string): string {
  return reason.length > REASON_CHARACTERS ? `${reason.slice(0, REASON_CHARACTERS)}…` : reason
}

/**
 * Reads what Redis has about a job's failures: `tries` (its failed attempts and its retries, oldest
 * first), the number of attempts before the last retry, the failed threads and, once the job has
 * failed permanently, its result.
 */
export async function readAttempts(redis: Redis, jobKey: string) {
  const [attempts, threads, failure, before] = await redis.hmget(
    jobKey,
    'tries',
    'failedThreads',
    'failure',
    'triedBefore',
  )
  const failed: FailedThreads = JSON.parse(threads || '{"count":0,"threads":[]}')
  const result: JobResult | undefined = failure ? JSON.parse(failure) : undefined
  const each = (attempts ?? '').split('\n').filter((text) => text !== '')
  return {
    tries: each.map((text): RecordedAttempt => JSON.parse(text)).reverse(),
    triedBefore: Number(before ?? 0),
    failedThreads: failed.threads,
    failedThreadCount: failed.count,
    result,
  }
}

/** Reads the receipts of the threads that were stored before an operator retried the job. */
export async function readReceiptsBefore(
  redis: Redis,
  jobKey: string,
): Promise<JobResult['receipts'] | undefined> {
  const result = await redis.hget(jobKey, 'resultBefore')
  return result === null ? undefined : JSON.parse(result).receipts
}

/**
 * Makes a function that retries or discards jobs, and returns how many. Jobs that are not failed
 * stay as they are.
 *
 * @param by who asked for it.
 * @param operation counts the outcomes of the retried jobs.
 */
export function createMoveFailed(redis: Redis, { base, jobs }: QueueKeys) {
  const move = openScript(redis, new URL('./failed-set.lua#move', import.meta.url))
  return async (
    kind: OperationKind,
    ids: readonly string[],
    by: string,
    operation = '',
  ): Promise<number> => {
    if (ids.length === 0) return 0
    const retry: RecordedAttempt = {
      at: new Date().toISOString(),
      worker: '',
      reason: '',
      retriedBy: by,
    }
    const about = [JSON.stringify(retry), MAX_ATTEMPTS, operation]
    return Number(await move(base, kind, jobs.interactive, jobs.bulk, ...about, ...ids))
  }
}
