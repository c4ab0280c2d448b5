// Completes jobs that succeeded: stores their results, sends them to the replicas that wait, adds
// the jobs to the list of recently completed jobs, and removes them from the queue. Also reads that
// list.
import type { Hit, Outcome } from '@sluice/contract'
import { createGroupCommit, traceIdOf } from '@sluice/process'
import { isUnavailable, openScript } from '@sluice/process/redis'
import type { Redis } from 'ioredis'
import { createImports } from '../imports/imports.ts'
import { type CompletedJob, countedOutcome, type JobResult, type LockedJob } from '../job/job.ts'
import type { QueueKeys } from '../job/lanes.ts'
import { payloadToRetain } from '../purge/purge.ts'
import { createRecordClaims, type ResultBounds } from '../replies/results.ts'

/**
 * Makes a function that completes jobs. Jobs that are passed to it during a round trip are
 * completed together in the next one. If Redis refuses that, they are completed one by one, because
 * one of them may be the cause.
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
  async function completeAll(jobs: readonly CompletedJob[]): Promise<void> {
    if (jobs.some(({ data }) => data.import !== undefined)) await Promise.all(jobs.map(recordJob))
    if (jobs.some(({ data }) => data.claim !== undefined)) await recordClaims(jobs)
    const completed = jobs.map((job) => {
      const { id, lane, token, attempt, data, progress } = job
      const { tenant, retained, replyTo: stream, claim, purged } = data
      return {
        id,
        lane: keys.jobs[lane],
        token,
        attempt,
        tenant,
        retained,
        stream,
        operation: progress.operation,
        claim,
        purged,
        payload: payloadToRetain(job),
      }
    })
    const texts = jobs.flatMap((job) => [
      JSON.stringify(job.result),
      JSON.stringify(recentLine(job, worker)),
    ])
    const times = { retainedMs, transientMs, resultBytes, recentBytes }
    let more = await completeJobs(keys.base, { ...times, jobs: completed }, ...texts)
    while (more === 1) more = await completeJobs(keys.base, { ...times, jobs: [] })
  }
  const commit = createGroupCommit(async (jobs: CompletedJob[]) => {
    const [all] = await Promise.allSettled([completeAll(jobs)])
    if (all.status === 'fulfilled' || jobs.length === 1 || isUnavailable(all.reason))
      return jobs.map(() => all)
    return Promise.allSettled(jobs.map((job) => completeAll([job])))
  })
  return async (job: CompletedJob): Promise<void> => {
    const ended = await commit(job)
    if (ended.status === 'rejected') throw ended.reason
  }
}

export interface StoredCounter {
  inc(labels: { outcome: Outcome }): void
}

/**
 * Counts the stored threads of a job. Leaves out threads that were stored, and so counted, before
 * an operator retried the job.
 */
export function countStored(
  stored: StoredCounter,
  { receiptsBefore }: Pick<LockedJob, 'receiptsBefore'>,
  receipts: JobResult['receipts'],
): void {
  for (const [place, receipt] of receipts.entries()) {
    if (receipt && !receiptsBefore?.[place]) stored.inc({ outcome: countedOutcome(receipt) })
  }
}

/** Makes the line about a completed job, a list of about 160 bytes. Times are in ms since 1970. */
function recentLine({ id, name, data, attempt, enqueuedAt, result }: CompletedJob, worker: string) {
  const counts: Record<Outcome, number> = { created: 0, updated: 0, unchanged: 0, deleted: 0 }
  for (const receipt of result.receipts) if (receipt) counts[countedOutcome(receipt)] += 1
  const { tenant, threads, requestId, trace, keyId } = data
  const { created, updated, unchanged, deleted } = counts
  const ids = [id, tenant, name, threads.length, requestId, data.import?.id ?? ''] as const
  const facts = [created, updated, unchanged, attempt, enqueuedAt, worker] as const
  const more = deleted > 0 ? [deleted] : []
  return [...ids, ...facts, trace ? traceIdOf(trace) : '', keyId, ...more] as const
}

/**
 * Reads a line about a completed job.
 * @param entry the id of the stream's entry, which begins with the time (ms).
 */
export function readRecent(entry: string, line: string): Hit {
  const fields: ReturnType<typeof recentLine> = JSON.parse(line)
  const [id, tenant, name, threads, requestId, importId, ...facts] = fields
  const [created, updated, unchanged, attempts, enqueuedAt, worker, traceId, keyId, deleted] = facts
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
