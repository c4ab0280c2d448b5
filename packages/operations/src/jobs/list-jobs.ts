// Lists the jobs of one state, with filters, page by page. It reads the queue's own lists, so that a queue of a million
// jobs needs no index for it.
import {
  failedHit,
  type Hit,
  type JobListQuery,
  type ListedState,
  parseIsoDate,
  placeText,
  readPlace,
} from '@sluice/contract'
import { asList, openScript } from '@sluice/process/redis'
import { attemptsShown, LANES, type Lane, type QueueKeys } from '@sluice/queue'
import type { Redis } from 'ioredis'
import type { FailedJobs } from '../failed/failed-jobs.ts'
import { SHOWN_REASON } from '../failed/reasons.ts'
import { createScanRecent, NEWEST } from './recent-jobs.ts'

/** Jobs of a page. A page of completed jobs may have some hundred more: those that completed together stay together. */
export const JOBS_SHOWN = 50
/** A page is returned after this time, even if it is not full. */
const PAGE_MS = 600

export interface JobList {
  jobs: Hit[]
  /** Where the next page begins. Absent if every job was examined. */
  next?: string
}

type Filter = Omit<JobListQuery, 'state' | 'after'>
/** Examines some jobs, from a place on. */
type ReadSome = (filter: Filter, after: string, most: number) => Promise<JobList>

/**
 * Makes the function that lists jobs. A job that moves meanwhile may be listed in two states. Places shift as jobs come
 * and go, so the next page may repeat or miss some.
 */
export function createListJobs(redis: Redis, keys: QueueKeys, failedJobs: Pick<FailedJobs, 'scan'>) {
  const { base } = keys
  const examine = openScript(redis, new URL('./list-jobs.lua', import.meta.url))
  const scanRecent = createScanRecent(redis, keys)

  function queued(state: 'waiting' | 'delayed' | 'active'): ReadSome {
    return async ({ lane: only, tenant = '', service, text = '' }, after, most) => {
      const lanes = LANES.filter((lane) => only === undefined || lane === only)
      const [, named = lanes[0], place = '0'] = /^(\w+)\.(\d{1,9})$/.exec(after) ?? []
      const lane = lanes.find((one) => one === named)
      if (lane === undefined) return { jobs: [] }
      const prefix = service === undefined ? '' : `${service}/`
      // Lua knows only the capitals of ASCII. `isOf` compares every text again.
      const ascii = /[^ -~]/.test(text) ? '' : text
      const input = { lane: keys.jobs[lane], state, from: Number(place), most, tenant, service: prefix, text: ascii }
      const [next, ...found] = asList(await examine(base, input))
      const jobs = found.map((fields) => queuedHit(lane, state, asList(fields)))
      const other = lanes[lanes.indexOf(lane) + 1]
      const following = Number(next) >= 0 ? `${lane}.${next}` : other && `${other}.0`
      return { jobs, ...(following && { next: following }) }
    }
  }

  const failed: ReadSome = async ({ tenant, group, operation, since, until }, after, most) => {
    const place = readPlace(after)
    const of = { ...(tenant && { tenant }), ...(group && { group }), ...(operation && { operation }) }
    const { jobs, next } = await failedJobs.scan({
      filter: { ...of, ...(since && { since }), ...(until && { until }) },
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
 * Returns whether a hit matches a filter. The name of a job has only its first and its last thread, so the others match
 * nothing.
 */
function isOf({ id, name = '', tenant, lane, worker, ...hit }: Hit, filter: Filter): boolean {
  const { text = '', service, since, until } = filter
  const at = Date.parse(hit.endedAt ?? hit.acceptedAt ?? '')
  if ((since && at < msOf(since)) || (until && at >= msOf(until))) return false
  if (filter.tenant !== undefined && filter.tenant !== tenant) return false
  if (filter.worker !== undefined && filter.worker !== worker) return false
  if (filter.lane !== undefined && lane !== undefined && filter.lane !== lane) return false
  if (service !== undefined && !name.split(' … ').some((one) => one.startsWith(`${service}/`))) return false
  return id === text || name.toLowerCase().includes(text.toLowerCase())
}
