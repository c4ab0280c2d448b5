// Records each failed try of a job, and the threads that failed last, beside BullMQ's last reason and stacks.
import type { FailedThread, RecordedTry } from '@sluice/contract'
import { openScript } from '@sluice/process/redis'
import type { Redis } from 'ioredis'
import type { JobProgress, JobResult, LockedJob } from '../job/job.ts'
import type { QueueKeys } from '../job/lanes.ts'

/** The most characters of a reason here. BullMQ keeps the reason of the last try whole. */
const REASON_CHARACTERS = 300
/** The bound of `tries`, and of `failedThreads`. Beyond it, the oldest tries and the last threads are left out. */
const FIELD_BYTES = 4_096

/** The failed threads of a job, and how many there were. */
interface FailedThreads {
  count: number
  threads: FailedThread[]
}

/**
 * Makes a function that records a failed try while this worker has the lock: call it before BullMQ counts the try. With
 * `final`, the job fails for good, and a worker that dies then leaves the result to `startSweeps`.
 */
export function createRecordTry(redis: Redis, { jobs }: QueueKeys, worker: string) {
  const record = openScript(redis, new URL('./failed-set.lua#try', import.meta.url))
  return async (
    { id, lane, token }: LockedJob,
    { message }: Error,
    failed: readonly FailedThread[],
    final?: { progress: JobProgress; result: JobResult },
  ): Promise<void> => {
    const failedTry: RecordedTry = { at: new Date().toISOString(), worker, reason: shortened(message) }
    const about = { id, token, most: FIELD_BYTES, try: JSON.stringify(failedTry) }
    const ifFinal = final && { progress: JSON.stringify(final.progress), result: JSON.stringify(final.result) }
    await record(jobs[lane], JSON.stringify({ ...about, failedThreads: JSON.stringify(fitting(failed)), ...ifFinal }))
  }
}

function fitting(failed: readonly FailedThread[]): FailedThreads {
  const fit: FailedThreads = { count: failed.length, threads: [] }
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

/** Reads the result of a job that failed for good. Undefined if a worker of an earlier release has left none. */
export async function readFailure(redis: Redis, jobKey: string): Promise<JobResult | undefined> {
  const result = await redis.hget(jobKey, 'failure')
  return result === null ? undefined : JSON.parse(result)
}

/** Reads the failed tries and the retries of a job, oldest first, its tries before the last retry, and its failed threads. */
export async function readTries(redis: Redis, jobKey: string) {
  const [tries, threads, before] = await redis.hmget(jobKey, 'tries', 'failedThreads', 'triedBefore')
  const failed: FailedThreads = JSON.parse(threads ?? '{"count":0,"threads":[]}')
  const each = (tries ?? '').split('\n').filter((text) => text !== '')
  return {
    tries: each.map((text): RecordedTry => JSON.parse(text)).reverse(),
    triedBefore: Number(before ?? 0),
    failedThreads: failed.threads,
    failedThreadCount: failed.count,
  }
}
