// Lists the jobs that completed last.
import type { RecentJobs, RecentJobsQuery } from '@sluice/contract'
import type { QueueKeys } from '@sluice/queue'
import { readRecent } from '@sluice/queue'
import type { Redis } from 'ioredis'

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
