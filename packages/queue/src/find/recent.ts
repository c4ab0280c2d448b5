// The list of jobs that completed last: a line about each.
import type { Hit, RecentJobs, RecentJobsQuery } from '@sluice/contract'
import type { Redis } from 'ioredis'
import type { QueueKeys } from '../bullmq-layout/queue-keys.ts'

/** A completed job as its line has it: see `recentLine`. Times in ms since 1970. */
export type RecentJob = [
  id: string,
  tenant: string,
  name: string,
  threads: number,
  requestId: string,
  importId: string,
  created: number,
  updated: number,
  unchanged: number,
  attempts: number,
  enqueuedAt: number,
  worker: string,
  traceId: string,
]

/** An entry has the jobs of one call, some hundred at most. */
const ENTRIES_LISTED = 50

/** Makes a function that returns the jobs that completed last, or the next ones after those that it returned before. */
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

/** Reads a line. @param entry the id of its entry, which begins with the time (ms) at which the job completed. */
export function readRecent(entry: string, line: string): Hit {
  const fields: RecentJob = JSON.parse(line)
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
