// Lists jobs page by page, and reads a job, in any state: waiting, delayed between two attempts,
// active, failed or completed. The lists are the queue's own, so even a queue with a million jobs
// needs no index for this.
import {
  type FailedJob,
  failedHit,
  type Hit,
  type JobListQuery,
  type ListedState,
  type Outcome,
  parseIsoDate,
  placeText,
  type RecentJobs,
  type RecentJobsQuery,
  readPlace,
} from '@sluice/contract'
import { traceIdOf } from '@sluice/process'
import { asList, openScript } from '@sluice/process/redis'
import {
  attemptsShown,
  createResults,
  type IngestJob,
  isJobId,
  type JobProgress,
  type JobResult,
  LANES,
  type Lane,
  nameJob,
  type QueueKeys,
  readAttempts,
  readJob,
  readPayload,
  readProgress,
  readRecent,
  sourceNameOf,
} from '@sluice/queue'
import type { Redis } from 'ioredis'
import type { FailedJobs } from '../failed/failed-jobs.ts'
import { reasonGroupOf, SHOWN_REASON } from '../failed/reasons.ts'

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

  // The service is compared with the name of a job, as in the other states.
  const failed: ReadSome = async ({ service: _, ...filter }, after, limit) => {
    const { jobs, next } = await failedJobs.scan({ filter, limit, after: readPlace(after) })
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

/** A job, its threads, and what happened to it. `hit` has the whole reason. */
export interface JobDetail
  extends Pick<FailedJob, 'tries' | 'failedThreads' | 'failedThreadCount' | 'stack' | 'payload'> {
  hit: Hit
  /** Present if the job has failed. */
  reasonGroup?: string
  /** Absent if only the line of the completed job remains. */
  threads?:
    | readonly { service: string; externalId: string; outcome?: Outcome | 'absent' | 'failed' }[]
    | undefined
  progress: JobProgress
  /** When the job was last fetched, in ms since 1970. */
  fetchedAt?: number
}

const NOTHING_FAILED = {
  progress: {},
  tries: [],
  failedThreads: [],
  failedThreadCount: 0,
  stack: [],
}

/** Describes a job by its payload. */
function jobHit(
  id: string,
  { tenant, requestId, keyId, threads, import: of, trace }: IngestJob,
): Hit {
  return {
    kind: 'job',
    id,
    tenant,
    name: nameJob(threads),
    threads: threads.length,
    requestId,
    ...(keyId && { keyId }),
    ...(of && { importId: of.id }),
    ...(trace && { traceId: traceIdOf(trace) }),
  }
}

/** Makes functions that read jobs by their ids. */
export function createReadJob(redis: Redis, keys: QueueKeys) {
  const { findRetained } = createResults(redis, keys)
  const scanRecent = createScanRecent(redis, keys)

  /** Reads a job that has not completed. */
  async function readQueued(id: string, lane: Lane): Promise<JobDetail | undefined> {
    const [job, { result, triedBefore, ...tried }] = await Promise.all([
      readJob(redis, keys.jobs[lane], id),
      readAttempts(redis, keys.jobs[lane] + id),
    ])
    if (job === undefined) return undefined
    const { data, enqueuedAt, failedAt, fetchedAt, reason, attempts, isActive, isDelayed, stack } =
      job
    const payload = readPayload(data)
    const isFailed = failedAt !== undefined
    const facts: Partial<Hit> = {
      state: isFailed ? 'failed' : isDelayed ? 'delayed' : isActive ? 'active' : 'waiting',
      lane,
      name: job.name,
      acceptedAt: isoOf(enqueuedAt),
      attempts: triedBefore + attemptsShown(attempts),
      ...(isFailed && { endedAt: isoOf(failedAt) }),
      ...(reason !== '' && { reason }),
    }
    return {
      hit: { ...jobHit(id, payload), ...facts },
      ...(isFailed && { reasonGroup: reasonGroupOf(reason) }),
      threads: threadsOf(payload, isFailed ? result : undefined),
      progress: readProgress(job.progress),
      ...(fetchedAt > 0 && { fetchedAt }),
      ...tried,
      stack: JSON.parse(stack),
      payload,
    }
  }

  /** Reads a job whose result is retained because a caller has the job's id. */
  async function readRetained(id: string): Promise<JobDetail | undefined> {
    const retained = await findRetained(id)
    if (retained === undefined) return undefined
    const { data, attempts, at, result } = retained
    const payload = readPayload(data)
    const hit: Hit = { ...jobHit(id, payload), state: 'completed', attempts, endedAt: isoOf(at) }
    return { hit, threads: threadsOf(payload, result), ...NOTHING_FAILED, payload }
  }

  /** Reads the line of a recently completed job. */
  async function readCompleted(id: string): Promise<Hit | undefined> {
    for (let after = NEWEST; after !== ''; ) {
      const { hits, next } = await scanRecent(after, id, 1)
      const hit = hits.find((one) => one.id === id)
      if (hit !== undefined) return hit
      after = next
    }
    return undefined
  }

  return {
    /** Reads a job in the queue or among the failed ones, in each lane. */
    readInQueue: async (id: string): Promise<JobDetail[]> =>
      (await Promise.all(LANES.map((lane) => readQueued(id, lane)))).filter(
        (found) => found !== undefined,
      ),
    /**
     * Reads a job in any state. Searches the states in the order in which jobs pass them, so that a
     * job that moves during the search is found.
     */
    async readAny(id: string): Promise<JobDetail | undefined> {
      const isOfBullmq = /^\d{1,16}$/.test(id)
      if (!isJobId(id) && !isOfBullmq) return undefined
      for (const lane of LANES) {
        const queued = await readQueued(id, lane)
        if (queued !== undefined) return queued
      }
      // BullMQ numbers the jobs that other programs add. They never complete.
      if (isOfBullmq) return undefined
      const [retained, line] = await Promise.all([readRetained(id), readCompleted(id)])
      if (line === undefined) return retained
      return { ...NOTHING_FAILED, payload: null, ...retained, hit: { ...retained?.hit, ...line } }
    },
    readRetained,
  }
}

/**
 * Returns a failed job in the form that the API answers. Returns undefined if the job has not
 * failed.
 */
export function failedJobOf({ hit, reasonGroup, ...job }: JobDetail): FailedJob | undefined {
  const {
    id,
    tenant,
    name = '',
    threads = 0,
    lane = '',
    acceptedAt = '',
    endedAt = '',
    attempts = 0,
    reason = '',
    keyId,
  } = hit
  if (reasonGroup === undefined) return undefined
  const { tries, failedThreads, failedThreadCount, stack, payload } = job
  return {
    id,
    tenant,
    ...(keyId && { keyId }),
    threads,
    lane,
    name,
    enqueuedAt: acceptedAt,
    failedAt: endedAt,
    attempts,
    // If one of BullMQ's tools failed the job, no attempt is recorded.
    failedThreadCount: tries.length === 0 ? threads : failedThreadCount,
    reason,
    reasonGroup,
    tries,
    failedThreads,
    stack,
    payload,
  }
}

const isoOf = (ms: number) => new Date(ms).toISOString()

/** @param result absent if the job has no result yet. */
function threadsOf({ threads }: IngestJob, result: JobResult | undefined): JobDetail['threads'] {
  return threads.map((thread, at) => {
    const outcome = result && (result.receipts[at]?.source.outcome ?? 'failed')
    return { ...sourceNameOf(thread), ...(outcome && { outcome }) }
  })
}
