// Completes jobs: stores and replies their results, and removes those that succeeded from the queue.
import type { Redis } from 'ioredis'
import type { QueueKeys } from '../bullmq-layout/queue-keys.ts'
import { createImports, itemsOf, recordProgressOf } from '../imports/imports.ts'
import type { CompletedJob, FetchedJob, JobResult } from '../job/job.ts'
import { createGroupCommit } from '../redis/group-commit.ts'
import { loadScript } from '../redis/script.ts'
import { createRecordClaims } from '../replies/claims.ts'
import type { ResultBounds } from '../replies/results.ts'

const completeScript = loadScript(new URL('./complete.lua', import.meta.url))

/** Makes a function that completes jobs in one step, and then evicts results beyond their bounds, in further steps. */
export function createCompleteJobs(
  redis: Redis,
  { base, jobs: laneKeys }: QueueKeys,
  { retainedMs, transientMs, bytes }: ResultBounds,
): (jobs: readonly CompletedJob[]) => Promise<void> {
  const run = completeScript(redis)
  const completeJobs = (args: (string | number)[]) => run(base, retainedMs, transientMs, bytes, ...args)
  return async (jobs) => {
    const args = jobs.flatMap(({ id, lane, token = '', retained, attempts, replyTo = '', result }) => {
      const kind = result.failure === undefined ? (retained ? 'retained' : '') : 'failed'
      return [id, laneKeys[lane], token, kind, attempts, replyTo, JSON.stringify(result)]
    })
    let mustEvict = await completeJobs(args)
    while (mustEvict === 1) mustEvict = await completeJobs([])
  }
}

/** Makes a function that completes a job, together with others. */
export function createComplete(redis: Redis, keys: QueueKeys, bounds: ResultBounds, claimBytes: number) {
  const completeJobs = createCompleteJobs(redis, keys, bounds)
  const imports = createImports(redis, keys)
  const recordClaims = createRecordClaims(redis, keys, claimBytes)
  return createGroupCommit(async (jobs: CompletedJob[]) => {
    if (jobs.some((job) => job.import !== undefined)) await recordProgressOf(jobs, imports)
    if (jobs.some(({ claim }) => claim !== undefined)) await recordClaims(jobs)
    await completeJobs(jobs)
    return jobs
  })
}

/** Describes a job with its result. With its lock's token, the job leaves the queue. */
export function completedJob({ id, lane, data, attempt }: FetchedJob, result: JobResult, token?: string): CompletedJob {
  const { retained, replyTo, import: of, claim, threads } = data
  const items = of && { id: of.id, items: itemsOf(threads, of.places) }
  return { id, lane, retained, attempts: attempt, result, token, replyTo, claim, import: items }
}
