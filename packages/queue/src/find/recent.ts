// The list of jobs that completed last: a line about each.
import type { Hit, Outcome, RecentJobs, RecentJobsQuery } from '@sluice/contract'
import type { Redis } from 'ioredis'
import type { QueueKeys } from '../bullmq-layout/queue-keys.ts'
import { type CompletedJob, traceIdOf } from '../job/job.ts'

/** The most entries of a list. An entry has the jobs of one call of complete.lua, some hundred at most. */
const ENTRIES_LISTED = 50

/** Makes a function that returns the jobs that completed last or, with `after`, the next ones after that entry. */
export function createListRecent(redis: Redis, { base }: QueueKeys): (query: RecentJobsQuery) => Promise<RecentJobs> {
  const key = `${base}recent`
  return async ({ after }) => {
    const entries =
      after === undefined
        ? (await redis.xrevrange(key, '+', '-', 'COUNT', ENTRIES_LISTED)).reverse()
        : await redis.xrange(key, `(${after}`, '+', 'COUNT', ENTRIES_LISTED)
    const jobs = entries.flatMap(([entry, [, , , lines = '']]) =>
      lines.split('\n').map((line) => readRecent(entry, line)),
    )
    return { jobs, next: entries.at(-1)?.[0] ?? after ?? '0-0' }
  }
}

/** What is listed of a completed job. Times are in ms since 1970. */
function factsOf({ id, name, data, attempt, enqueuedAt, result }: CompletedJob, worker: string) {
  const counts: Record<Outcome, number> = { created: 0, updated: 0, unchanged: 0 }
  for (const receipt of result.receipts) if (receipt) counts[receipt.source.outcome] += 1
  const { tenant, threads, requestId, trace } = data
  const { created, updated, unchanged } = counts
  const ids = [id, tenant, name, threads.length, requestId, data.import?.id ?? ''] as const
  return [...ids, created, updated, unchanged, attempt, enqueuedAt, worker, trace ? traceIdOf(trace) : ''] as const
}

/** Describes a completed job in one line of some 150 bytes. @param worker names the process that completed it. */
export function recentLine(job: CompletedJob, worker: string): string {
  return JSON.stringify(factsOf(job, worker))
}

/** Reads a line. @param entry the id of its entry, which begins with the time (ms) at which the job completed. */
export function readRecent(entry: string, line: string): Hit {
  const fields: ReturnType<typeof factsOf> = JSON.parse(line)
  const [id, tenant, name, threads, requestId, importId, ...facts] = fields
  const [created, updated, unchanged, attempts, enqueuedAt, worker, traceId] = facts
  return {
    kind: 'job',
    id,
    tenant,
    state: 'completed',
    name,
    threads,
    requestId,
    ...(importId !== '' && { importId }),
    ...(traceId !== '' && { traceId }),
    acceptedAt: new Date(enqueuedAt).toISOString(),
    endedAt: new Date(Number.parseInt(entry, 10)).toISOString(),
    attempts,
    outcomes: { created, updated, unchanged },
    worker,
  }
}
