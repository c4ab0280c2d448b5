// Completes jobs: stores and replies their results, and removes those that succeeded from the queue.
import type { Thread } from '@sluice/contract'
import type { Redis } from 'ioredis'
import type { QueueKeys } from './bullmq-layout/names.ts'
import type { FetchedJob } from './fetch.ts'
import { createGroupCommit } from './group-commit.ts'
import { createImports, recordProgressOf } from './imports.ts'
import type { Lane } from './job.ts'
import type { JobResult } from './receipt.ts'
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

/** How long results stay, and how many bytes of Redis they may take. */
export interface ResultBounds {
  /** For results whose job's id the caller has, in ms. */
  retainedMs: number
  /** For all other results, in ms. */
  transientMs: number
  /** Of all results together. Beyond it, the oldest are evicted first. */
  bytes: number
}

const completeScript = loadScript(new URL('./bullmq-layout/complete.lua', import.meta.url))

/** Makes a function that completes jobs in one step. */
export function createCompleteJobs(
  redis: Redis,
  { base, jobs: laneKeys }: QueueKeys,
  { retainedMs, transientMs, bytes }: ResultBounds,
): (jobs: readonly CompletedJob[]) => Promise<unknown> {
  const completeJobs = completeScript(redis)
  return (jobs) => {
    const args = jobs.flatMap(({ id, lane, token, retained, attempts, replyTo, result }) => {
      const kind = result.failure === undefined ? (retained ? 'retained' : '') : 'failed'
      return [id, laneKeys[lane], token ?? '', kind, attempts, replyTo ?? '', JSON.stringify(result)]
    })
    return completeJobs(base, Date.now(), retainedMs, transientMs, bytes, ...args)
  }
}

/** Makes a function that completes a job, together with others. */
export function createComplete(
  redis: Redis,
  keys: QueueKeys,
  bounds: ResultBounds,
): (job: CompletedJob) => Promise<unknown> {
  const completeJobs = createCompleteJobs(redis, keys, bounds)
  const imports = createImports(redis, keys)
  return createGroupCommit(async (jobs: CompletedJob[]) => {
    if (jobs.some((job) => job.import !== undefined)) await recordProgressOf(jobs, imports)
    await completeJobs(jobs)
    return jobs
  })
}

/** Describes a job with its result. With its lock's token, the job leaves the queue. */
export function completedJob({ id, lane, data, attempt }: FetchedJob, result: JobResult, token?: string): CompletedJob {
  const { retained, replyTo, import: part, threads } = data
  return {
    id,
    lane,
    retained,
    attempts: attempt,
    result,
    ...(token !== undefined && { token }),
    ...(replyTo !== undefined && { replyTo }),
    ...(part !== undefined && { import: { id: part.id, items: itemsOf(threads, part.places) } }),
  }
}

function itemsOf(threads: readonly Thread[], places: readonly number[]) {
  return threads.map(({ source }, at) => ({ index: places[at] ?? at, externalId: source.externalId }))
}
