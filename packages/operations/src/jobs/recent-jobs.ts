// The jobs that completed last: the list of them, and the scan of it for look-ups.
import type { Hit, RecentJobs, RecentJobsQuery } from '@sluice/contract'
import { asList, openScript } from '@sluice/process/redis'
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

/** The place before the newest job. */
export const NEWEST = '+'

/**
 * Makes a function that examines the next completed jobs, the newest first, in a millisecond of Redis's time. It returns
 * those whose lines have a text, `most` and some that completed together with them, and where to continue ('' at the end).
 */
export function createScanRecent(redis: Redis, { base }: QueueKeys) {
  const scan = openScript(redis, new URL('./scan-recent.lua', import.meta.url))
  return async (after: string, text: string, most: number): Promise<{ hits: Hit[]; next: string }> => {
    // As the text stands in the JSON of a line.
    const [next, found] = asList(await scan(base, after, JSON.stringify(text).slice(1, -1), most))
    const lines = asList(found).map(asList)
    return { hits: lines.map(([entry, line]) => readRecent(String(entry), String(line))), next: String(next) }
  }
}
