// Finds failed jobs for people, and retries or discards them for operators.
import {
  type FailedJobFilter,
  type FailedJobGroups,
  type FailedJobPage,
  type FailedJobPlace,
  type FailedJobQuery,
  GROUPS_LISTED,
  parseIsoDate,
  placeText,
  TREND_HOURS,
} from '@sluice/contract'
import { asList, openScript } from '@sluice/process/redis'
import type { IngestJob, Lane, QueueKeys } from '@sluice/queue'
import { attemptsShown, createMoveFailed, LANES, readPayload, sourceNameOf } from '@sluice/queue'
import type { Redis } from 'ioredis'
import { groupIdOf, reasonGroupOf, SHOWN_REASON } from './reasons.ts'

type Summary = FailedJobPage['jobs'][number] & { failedThreadCount: number }

/**
 * Some of the failed jobs, newest first. `next`: the last job that was examined, after which the
 * scan continues.
 */
interface ScannedJobs {
  jobs: Summary[]
  /** Undefined if no failed job is left. */
  next: FailedJobPlace | undefined
}

export type FailedJobs = ReturnType<typeof createFailedJobs>

/** Grouping ends after this time. (Grouping 100,000 failed jobs takes a second or two.) */
const GROUPS_MS = 10_000
const GROUPED_AT_ONCE = 250
const HOUR_MS = 60 * 60 * 1_000

/** A page is returned after this time, even if it is not full. */
const PAGE_MS = 2_000

/** Opens the failed jobs of a queue. */
export function createFailedJobs(redis: Redis, keys: QueueKeys) {
  const { jobs: laneKeys, failed } = keys
  const scanLane = openScript(redis, new URL('./scan-failed.lua', import.meta.url))

  /** Examines the next jobs and returns those that match, at most `limit`. */
  async function scan({ filter, limit, after }: FailedJobQuery): Promise<ScannedJobs> {
    // No tenant has the empty name, and scan-failed.lua would take it for all tenants.
    if (filter.tenant === '') return { jobs: [], next: undefined }
    const [latest, earliest] = timesOf(filter)
    const { reason = '', tenant = '', operation = '' } = filter
    const from = [after?.at ?? latest, earliest, after?.at ?? '', after?.id ?? '']
    const lanes = await Promise.all(
      LANES.map(async (lane) => {
        const reply = await scanLane(
          laneKeys[lane],
          ...from,
          limit,
          reason,
          tenant,
          operation,
          ...nameOf(filter),
          ...needlesOf(filter),
        )
        return readScan(lane, filter, reply)
      }),
    )
    return mergeLanes(lanes, limit)
  }

  return {
    scan,
    /**
     * Returns a page of jobs. It may have fewer jobs than `limit`, because reading it takes at most
     * about `PAGE_MS`.
     */
    async list({ limit, ...query }: FailedJobQuery): Promise<FailedJobPage> {
      const jobs: Summary[] = []
      const end = performance.now() + PAGE_MS
      let next = query.after
      while (jobs.length < limit && performance.now() < end) {
        const part = await scan({ ...query, limit: limit - jobs.length, after: next })
        jobs.push(...part.jobs)
        next = part.next
        if (next === undefined) break
      }
      return next === undefined ? { jobs } : { jobs, next: placeText(next) }
    },
    /**
     * Groups the matching failed jobs by reason. The groups with the most threads come first.
     * Examines jobs, newest first, for at most `GROUPS_MS`.
     */
    async groups(filter: FailedJobFilter): Promise<FailedJobGroups> {
      const groups = new Map<string, Group>()
      const now = Date.now()
      const end = performance.now() + GROUPS_MS
      let after: FailedJobPlace | undefined
      do {
        const { jobs, next } = await scan({ filter, limit: GROUPED_AT_ONCE, after })
        for (const job of jobs) {
          const group = groups.get(job.reasonGroup) ?? newGroup(job)
          groups.set(job.reasonGroup, group)
          const hour = TREND_HOURS - 1 - Math.floor((now - Date.parse(job.failedAt)) / HOUR_MS)
          if (group.hours[hour] !== undefined) group.hours[hour]++
          group.jobs++
          group.threads += job.failedThreadCount
          group.oldestAt = job.failedAt
        }
        after = next
      } while (after !== undefined && performance.now() < end)
      const sorted = [...groups.values()].sort((one, other) => other.threads - one.threads)
      return {
        groups: sorted.slice(0, GROUPS_LISTED),
        isComplete: after === undefined && sorted.length <= GROUPS_LISTED,
      }
    },
    /**
     * Counts the failed jobs in the time range of a filter, including those that do not match the
     * filter's other fields.
     */
    async count(filter: FailedJobFilter): Promise<number> {
      const [latest, earliest] = timesOf(filter)
      const counts = await Promise.all(
        LANES.map((lane) => redis.zcount(failed[lane], earliest, latest)),
      )
      return counts.reduce((sum, count) => sum + count, 0)
    },
    move: createMoveFailed(redis, keys),
  }
}

type Group = FailedJobGroups['groups'][number]

function newGroup({ id: jobId, reason, reasonGroup, failedAt }: Summary): Group {
  const id = groupIdOf(reasonGroup)
  const about = { id, reasonGroup, jobId, reason, newestAt: failedAt, oldestAt: failedAt }
  return { ...about, hours: Array(TREND_HOURS).fill(0), jobs: 0, threads: 0 }
}

/** Returns the time range of a filter as bounds of a sorted set. */
function timesOf({ since, until }: FailedJobFilter): [latest: string, earliest: string] {
  const ms = (date: string) => String(Date.parse(parseIsoDate(date) ?? date))
  return [until === undefined ? '+inf' : ms(until), since === undefined ? '-inf' : ms(since)]
}

/**
 * Returns the beginning and the end that the name of a matching job has, if the job has one thread.
 */
function nameOf({ service, externalId }: FailedJobFilter): [begin: string, end: string] {
  return [
    service === undefined ? '' : `${service}/`,
    externalId === undefined ? '' : `/${externalId.toWellFormed()}`,
  ]
}

/** Returns texts that occur in the data of every matching job, as `JSON.stringify` writes them. */
function needlesOf({ service, externalId }: FailedJobFilter): string[] {
  return Object.entries({ service, externalId }).flatMap(([name, value]) =>
    value === undefined ? [] : [`"${name}":${JSON.stringify(value)}`],
  )
}

function readScan(lane: Lane, filter: FailedJobFilter, reply: unknown): ScannedJobs {
  const [at, id, ...jobs] = asList(reply)
  const next = id === '' ? undefined : { at: Number(at), id: String(id) }
  return { jobs: jobs.flatMap((fields) => readFound(lane, filter, asList(fields))), next }
}

/** @param fields as scan-failed.lua returns them. */
function readFound(lane: Lane, filter: FailedJobFilter, fields: readonly unknown[]): Summary[] {
  const [id, failedAt, tenant, threads, text, named, failedReason, ...others] = fields
  const [enqueuedAt, tries, triedBefore, failedThreads] = others
  const data = text === '' ? undefined : readPayload(String(text))
  if (data !== undefined && !matches(data, filter)) return []
  // The name of a job of one thread ends with the externalId, which may have a slash.
  const externalId = filter.externalId?.toWellFormed()
  const name = String(named)
  if (
    data === undefined &&
    externalId !== undefined &&
    name.slice(name.indexOf('/') + 1) !== externalId
  )
    return []
  const reason = String(failedReason ?? '')
  const reasonGroup = reasonGroupOf(reason)
  if (filter.group !== undefined && filter.group !== groupIdOf(reasonGroup)) return []
  const count = data?.threads.length ?? Number(threads)
  const job = {
    id: String(id),
    lane,
    tenant: data?.tenant ?? String(tenant),
    threads: count,
    name,
    enqueuedAt: isoOf(enqueuedAt),
    failedAt: isoOf(failedAt),
    attempts: Number(triedBefore) + attemptsShown(tries),
    failedThreadCount: Number(failedThreads) < 0 ? count : Number(failedThreads),
    reason: reason.slice(0, SHOWN_REASON),
    reasonGroup,
  }
  return [job]
}

const isoOf = (ms: unknown) => new Date(Number(ms)).toISOString()

function matches({ tenant, threads }: IngestJob, filter: FailedJobFilter): boolean {
  if (filter.tenant !== undefined && filter.tenant !== tenant) return false
  if (filter.service === undefined && filter.externalId === undefined) return true
  return threads.some((thread) => {
    const { service, externalId } = sourceNameOf(thread)
    if (filter.service !== undefined && filter.service !== service) return false
    return filter.externalId === undefined || filter.externalId === externalId
  })
}

/**
 * Merges the jobs that were found in each lane, newest first. If a lane's scan stopped early, older
 * jobs of that lane are unknown. So the result ends at the newest job at which a scan stopped.
 */
function mergeLanes(lanes: readonly ScannedJobs[], limit: number): ScannedJobs {
  const [end] = lanes.flatMap(({ next }) => next ?? []).sort(newestFirst)
  const jobs = lanes
    .flatMap((lane) => lane.jobs)
    .sort((one, other) => newestFirst(placeOf(one), placeOf(other)))
    .filter((job) => end === undefined || newestFirst(placeOf(job), end) <= 0)
  const last = jobs[limit - 1]
  if (jobs.length > limit && last !== undefined)
    return { jobs: jobs.slice(0, limit), next: placeOf(last) }
  return { jobs, next: end }
}

function placeOf({ failedAt, id }: Summary): FailedJobPlace {
  return { at: Date.parse(failedAt), id }
}

function newestFirst(one: FailedJobPlace, other: FailedJobPlace): number {
  return other.at - one.at || (one.id < other.id ? 1 : one.id > other.id ? -1 : 0)
}
