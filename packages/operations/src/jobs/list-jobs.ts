// Lists jobs page by page: the jobs of a state, with filters, and the recently completed jobs. The
// lists are the queue's own, so even a queue with a million jobs needs no index for this.
import {
  failedHit,
  type Hit,
  type JobListQuery,
  type ListedState,
  parseIsoDate,
  placeText,
  type RecentJobs,
  type RecentJobsQuery,
  readPlace,
} from '@sluice/contract'
import { asList, openScript } from '@sluice/process/redis'
import { attemptsShown, LANES, type Lane, type QueueKeys, readRecent } from '@sluice/queue'
import type { Redis } from 'ioredis'
import type { FailedJobs } from '../failed/failed-jobs.ts'
import { SHOWN_REASON } from '../failed/reasons.ts'

/**
 * The number of jobs on a page. A page of completed jobs may have some hundred more, because jobs
 * that completed together are shown together.
 */
export const JOBS_SHOWN = 50
/** A page is returned after this time, even if it is not full. */
const PAGE_MS = 600

interface JobList {
  jobs: Hit[]
  /** The place at which the next page begins. Absent if every job was examined. */
  next?: string
}

type Filter = Omit<JobListQuery, 'state' | 'after'>
/** Examines some jobs, from a given place on. */
type ReadSome = (filter: Filter, after: string, most: number) => Promise<JobList>

/**
 * Makes the function that lists jobs. A job that moves during a scan may be listed in two states.
 * Places shift as jobs are added and removed, so the next page may repeat or miss jobs.
 */
export function createListJobs(
  redis: Redis,
  keys: QueueKeys,
  failedJobs: Pick<FailedJobs, 'scan'>,
) {
  const { base } = keys
  const examine = openScript(redis, new URL('./list-jobs.lua', import.meta.url))
  const scanRecent = createScanRecent(redis, keys)

  /**
   * Lists the jobs of a state. A cursor is `LANE.PLACE`: pages continue in the lane and, after its
   * last job, in the next lane.
   */
  function queued(state: 'waiting' | 'delayed' | 'active'): ReadSome {
    return async ({ lane: only, tenant = '', service, text = '' }, after, most) => {
      const lanes = LANES.filter((lane) => only === undefined || lane === only)
      const [, name = lanes[0], place = '0'] = /^(\w+)\.(\d{1,9})$/.exec(after) ?? []
      const lane = lanes.find((one) => one === name)
      if (lane === undefined) return { jobs: [] }
      const [reached, ...found] = asList(
        await examine(base, {
          ...{ lane: keys.jobs[lane], state, from: Number(place), most, tenant },
          service: service === undefined ? '' : `${service}/`,
          // Lua lowers only the case of ASCII letters. `isOf` compares every text again.
          text: /[^ -~]/.test(text) ? '' : text,
        }),
      )
      const jobs = found.map((fields) => queuedHit(lane, state, asList(fields)))
      if (Number(reached) >= 0) return { jobs, next: `${lane}.${reached}` }
      const nextLane = lanes[lanes.indexOf(lane) + 1]
      return nextLane === undefined ? { jobs } : { jobs, next: `${nextLane}.0` }
    }
  }

  const failed: ReadSome = async ({ tenant, group, operation, since, until }, after, most) => {
    const place = readPlace(after)
    const { jobs, next } = await failedJobs.scan({
      filter: {
        ...(tenant && { tenant }),
        ...(group && { group }),
        ...(operation && { operation }),
        ...(since && { since }),
        ...(until && { until }),
      },
      limit: most,
      ...(place && { after: place }),
    })
    return { jobs: jobs.map(failedHit), ...(next && { next: placeText(next) }) }
  }

  const completed: ReadSome = async ({ worker = '', since, until }, after, most) => {
    const newest = until === undefined ? NEWEST : `${msOf(until)}-0`
    const { hits, next } = await scanRecent(/^\d+-\d+$/.test(after) ? after : newest, worker, most)
    const isOver = next === '' || (since !== undefined && Number.parseInt(next, 10) < msOf(since))
    return { jobs: hits, ...(!isOver && { next }) }
  }

  const readers: Record<ListedState, ReadSome> = {
    waiting: queued('waiting'),
    delayed: queued('delayed'),
    active: queued('active'),
    failed,
    completed,
  }

  return async ({ state = 'completed', after = '', ...filter }: JobListQuery): Promise<JobList> => {
    const jobs: Hit[] = []
    const end = performance.now() + PAGE_MS
    let next: string | undefined = after
    do {
      const some: JobList = await readers[state](filter, next, JOBS_SHOWN - jobs.length)
      jobs.push(...some.jobs.filter((hit) => isOf(hit, filter)))
      next = some.next
    } while (next !== undefined && jobs.length < JOBS_SHOWN && performance.now() < end)
    return next === undefined ? { jobs } : { jobs, next }
  }
}

const msOf = (date: string) => Date.parse(parseIsoDate(date) ?? date)

/** @param fields in the order of list-jobs.lua */
function queuedHit(lane: Lane, state: Hit['state'], fields: readonly unknown[]): Hit {
  const [id, tenant, threads, name, enqueuedAt, tries, reason] = fields
  return {
    kind: 'job',
    id: String(id),
    tenant: String(tenant),
    ...(state && { state }),
    name: String(name),
    threads: Number(threads),
    lane,
    acceptedAt: new Date(Number(enqueuedAt)).toISOString(),
    attempts: attemptsShown(tries),
    ...(reason ? { reason: String(reason).slice(0, SHOWN_REASON) } : {}),
  }
}

/**
 * Returns whether a hit matches a filter. The name of a job has only its first and its last thread,
 * so a filter can't find the threads between.
 */
function isOf({ id, name = '', tenant, lane, worker, ...hit }: Hit, filter: Filter): boolean {
  const { text = '', service, since, until } = filter
  const at = Date.parse(hit.endedAt ?? hit.acceptedAt ?? '')
  if ((since && at < msOf(since)) || (until && at >= msOf(until))) return false
  if (filter.tenant !== undefined && filter.tenant !== tenant) return false
  if (filter.worker !== undefined && filter.worker !== worker) return false
  if (filter.lane !== undefined && lane !== undefined && filter.lane !== lane) return false
  if (service !== undefined && !name.split(' … ').some((one) => one.startsWith(`${service}/`)))
    return false
  return id === text || name.toLowerCase().includes(text.toLowerCase())
}

/**
 * The most entries of a list. An entry has the jobs that one call of complete.lua completed, at
 * most some hundred.
 */
const ENTRIES_LISTED = 50

/**
 * Makes a function that returns the recently completed jobs or, with `after`, the jobs of the
 * entries after that one.
 */
export function createListRecent(
  redis: Redis,
  { base }: QueueKeys,
): (query: RecentJobsQuery) => Promise<RecentJobs> {
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

/** The place in front of the newest job. */
export const NEWEST = '+'

/**
 * Makes a function that examines the next completed jobs, newest first, in a millisecond of Redis's
 * time. It returns the jobs whose line contains a text (`most`, and further ones that completed
 * together with them), and the place to continue at ('' at the end).
 */
export function createScanRecent(redis: Redis, { base }: QueueKeys) {
  const scan = openScript(redis, new URL('./scan-recent.lua', import.meta.url))
  return async (
    after: string,
    text: string,
    most: number,
  ): Promise<{ hits: Hit[]; next: string }> => {
    // Search for the text as the JSON of a line has it, but without quotation marks.
    const [next, found] = asList(await scan(base, after, JSON.stringify(text).slice(1, -1), most))
    const lines = asList(found).map(asList)
    return {
      hits: lines.map(([entry, line]) => readRecent(String(entry), String(line))),
      next: String(next),
    }
  }
}
