// Completes jobs: stores and replies their results, and takes those that succeeded off the queue.
import type { Redis } from 'ioredis'
import type { QueueKeys } from './bullmq-layout/names.ts'
import { openQueue } from './connections.ts'
import type { FetchedJob } from './fetch.ts'
import { createGroupCommit } from './group-commit.ts'
import { createImports, recordProgressOf } from './imports.ts'
import { LANES, type Lane } from './job.ts'
import type { JobResult } from './receipt.ts'
import { RETAIN_MARK_MS } from './results.ts'
import { loadScript } from './script.ts'

/** A job that succeeded, or that failed for good. */
export interface CompletedJob {
  id: string
  lane: Lane
  /** The caller got the job's id when it was enqueued. */
  retained: boolean
  replyTo?: string
  /** The lock of a job that succeeded, which leaves the queue. A failed job stays with BullMQ. */
  token?: string
  attempts: number
  result: JobResult
  /** The job's import, if nobody waits for it, and the job's items in it. */
  import?: { id: string; items: { index: number; externalId: string }[] }
}

/** How long results stay, and how much memory of Redis they may take. */
export interface ResultBounds {
  /** For results whose job's id the caller has, in ms. */
  retainedMs: number
  /** For all other results, in ms. */
  transientMs: number
  /** For all results together. Beyond it, the oldest are evicted first. */
  bytes: number
  /** For all failed jobs together, as BullMQ keeps them. Beyond it, the oldest are evicted first. */
  failedBytes: number
}

const completeScript = loadScript(new URL('./bullmq-layout/complete.lua', import.meta.url))

/** Makes a function that completes jobs in one step and returns the ids of the failed jobs that exceed their bound. */
export function createCompleteJobs(
  redis: Redis,
  { base, jobs: laneKeys }: QueueKeys,
  { retainedMs, transientMs, bytes, failedBytes }: ResultBounds,
): (jobs: readonly CompletedJob[]) => Promise<string[]> {
  const completeJobs = completeScript(redis)
  return async (jobs) => {
    const args = jobs.flatMap(({ id, lane, token, retained, attempts, replyTo, result }) => {
      const kind = result.failure === undefined ? (retained ? 'retained' : '') : 'failed'
      return [id, laneKeys[lane], token ?? '', kind, attempts, replyTo ?? '', JSON.stringify(result)]
    })
    const bounds = [retainedMs, transientMs, bytes, RETAIN_MARK_MS, failedBytes]
    const excess = await completeJobs(base, Date.now(), ...bounds, ...args)
    return Array.isArray(excess) ? excess.map(String) : []
  }
}

/**
 * Makes a function that completes one job, together with others.
 *
 * @param onEvicted receives the id of each failed job that was removed because failed jobs exceed their bound.
 */
export function createComplete(
  redis: Redis,
  keys: QueueKeys,
  bounds: ResultBounds,
  { onEvicted, onError }: { onEvicted: (jobId: string) => void; onError: (error: Error) => void },
): (job: CompletedJob) => Promise<void> {
  const completeJobs = createCompleteJobs(redis, keys, bounds)
  const imports = createImports(redis, keys)
  const removeFailed = createRemoveFailed(redis, keys)
  const complete = createGroupCommit(async (jobs: CompletedJob[]) => {
    if (jobs.some((job) => job.import !== undefined)) await recordProgressOf(jobs, imports)
    for (const id of await completeJobs(jobs)) {
      onEvicted(id)
      await removeFailed(id).catch(onError)
    }
    return jobs.map(() => true)
  })
  return async (job) => void (await complete(job))
}

/** Describes a job with its result. With its lock's token, the job leaves the queue. */
export function completedJob({ id, lane, data, attempt }: FetchedJob, result: JobResult, token?: string): CompletedJob {
  const { retained, replyTo, import: part, threads } = data
  const itemOf = (place: number, at: number) => ({ index: place, externalId: threads[at]?.source.externalId ?? '' })
  return {
    id,
    lane,
    retained,
    attempts: attempt,
    result,
    ...(token !== undefined && { token }),
    ...(replyTo !== undefined && { replyTo }),
    ...(part !== undefined && { import: { id: part.id, items: part.places.map(itemOf) } }),
  }
}

/** Makes a function that removes a failed job, unless it was retried meanwhile. */
function createRemoveFailed(redis: Redis, keys: QueueKeys): (id: string) => Promise<void> {
  const queues = LANES.map((lane) => openQueue(keys, lane, redis))
  return async (id) => {
    for (const queue of queues) {
      const job = await queue.getJob(id)
      if ((await job?.isFailed()) === true) await job?.remove()
    }
  }
}
