// Looks up jobs and results, retains results for callers that have a job's id, and forgets answers after a restore.
import type { JobState } from '@sluice/contract'
import { asList, openScript } from '@sluice/process/redis'
import type { Redis } from 'ioredis'
import { type IngestJob, isJobId, type JobResult, readProgress, attemptsShown } from '../job/job.ts'
import type { QueueKeys, Queues } from '../job/lanes.ts'

/** How long results stay, and how many bytes of Redis they may use. */
export interface ResultBounds {
  /** For results whose job's id the caller has. */
  retainedMs: number
  /** For all other results. */
  transientMs: number
  /** Of all results together: see complete.lua. */
  resultBytes: number
  /** Of the list of jobs that completed last. */
  recentBytes: number
  /** Of idempotency keys. */
  claimBytes: number
}

export type Results = ReturnType<typeof createResults>

/** How long a result is kept if it becomes retained only after its job completed. */
const RETAINED_MS = 3_600_000
const IDS_AT_ONCE = 200

/**
 * Opens the results of jobs. They are stored outside BullMQ, which would prune transient and retained ones alike.
 *
 * @param largeReads a connection for large replies, behind which no caller's post may wait.
 */
export function createResults(redis: Redis, { base, jobs }: QueueKeys, largeReads = redis) {
  const find = openScript(redis, new URL('./results.lua#find', import.meta.url))
  const look = openScript(redis, new URL('./results.lua#look', import.meta.url))
  const retain = openScript(redis, new URL('./results.lua#retain', import.meta.url))
  return {
    /** Returns the results of the jobs that Redis knows, by id: undefined for a job that is not done. */
    async find(ids: readonly string[]): Promise<Map<string, JobResult | undefined>> {
      const results = new Map<string, JobResult | undefined>()
      for (let start = 0; start < ids.length; start += IDS_AT_ONCE) {
        const some = ids.slice(start, start + IDS_AT_ONCE)
        const found = asList(await find(base, jobs.interactive, jobs.bulk, ...some))
        for (const [at, id] of some.entries()) {
          const text = found[at]
          if (typeof text === 'string') results.set(id, text === '' ? undefined : JSON.parse(text))
        }
      }
      return results
    },
    /**
     * Returns the job's result. If it has none yet, its result will be retained.
     *
     * @param data the job's payload. With it, a transient result is retained, too, for an hour.
     */
    async retainResult(jobId: string, data = '', tenant = ''): Promise<JobResult | undefined> {
      const result = String(await retain(base, jobId, data, RETAINED_MS, jobs.interactive, jobs.bulk, tenant))
      return result === '' ? undefined : JSON.parse(result)
    },
    /** Returns the result of a job that is done and has this claim: see `claimName`. */
    async findClaimed(claim: string, jobId: string): Promise<JobResult | undefined> {
      const [claimedBy, result] = await redis.hmget(`${base}claim:${claim}`, 'job', 'result')
      return claimedBy === jobId && typeof result === 'string' ? JSON.parse(result) : undefined
    },
    /** Returns a retained result, the job's payload, when (ms since 1970) and at which attempt the job completed. */
    async findRetained(jobId: string) {
      const { result: text, data, at, attempts } = await redis.hgetall(`${base}retained:${jobId}`)
      if (text === undefined || data === undefined) return undefined
      const result: JobResult = JSON.parse(text)
      return { result, data, at: Number(at), attempts: Number(attempts) }
    },
    /** Reads the payload and the result of a retained job, as JSON, by the connection for large replies. */
    async readRetained(jobId: string): Promise<{ data: Buffer; result: Buffer } | undefined> {
      const [data, result] = await largeReads.hmgetBuffer(`${base}retained:${jobId}`, 'data', 'result')
      return data && result ? { data, result } : undefined
    },
    /** Returns what is small of a job of one thread: see `#look`. */
    async look(jobId: string): Promise<readonly unknown[]> {
      return asList(await look(base, jobId, jobs.interactive, jobs.bulk))
    },
  }
}

/** A job as its caller may see it. */
export interface FoundJob {
  state: JobState
  changedAt: Date
  attempts: number
  /** Of a job that completed: the bytes that `readRetained` reads. */
  bytes: number
}

/** Finds a job of one thread by its id, without its payload: its retained result, otherwise BullMQ's job. */
export async function findJob(
  queues: Queues,
  { look }: Pick<Results, 'look'>,
  tenant: string,
  id: string,
): Promise<FoundJob | undefined> {
  for (let looks = 0; looks < 2; looks++) {
    const [owner, bytes, place, about] = await look(id)
    // Nothing more is read for another tenant, so it can't tell a job of this one from none.
    if (owner !== tenant) return undefined
    if (!Array.isArray(about))
      return { state: 'completed', changedAt: new Date(Number(place)), attempts: Number(about), bytes: Number(bytes) }
    const state = await queues[place === 2 ? 'interactive' : 'bulk'].getJobState(id)
    // The job may have completed since the look.
    if (state !== 'unknown') return describeFound(state, about)
  }
  return undefined
}

/** @param fields as `timesOf` returns them: see jobs.lua. */
function describeFound(state: string, [enqueuedAt, fetchedAt, failedAt, failedAttempts, progress]: readonly unknown[]): FoundJob {
  const attempts = attemptsShown(failedAttempts)
  const since = (at: unknown) => ({ changedAt: new Date(Number(at ?? enqueuedAt)), bytes: 0 })
  if (state === 'failed') return { state, attempts, ...since(failedAt) }
  if (state === 'active') return { state, attempts: attempts + 1, ...since(fetchedAt) }
  return { state: 'waiting', attempts, ...since(readProgress(progress).waitingSince) }
}

/** While Redis is unavailable, retaining is repeated after this pause, at most RETAIN_ATTEMPTS times: for five minutes. */
const RETAIN_AGAIN_MS = 500
const RETAIN_ATTEMPTS = 600
/**
 * The most characters of all payloads that wait for Redis. A job that exceeds it is marked without its payload: if it
 * completes before Redis answers, its result is not retained.
 */
const MAX_CHARACTERS = 32 * 1024 * 1024

/** Makes a function that has a job's result retained as soon as Redis answers: see `retainResult`. Never throws. */
export function createRetainLater({ retainResult }: Pick<Results, 'retainResult'>) {
  let characters = 0
  async function retain(jobId: string, data: string, tenant: string): Promise<void> {
    characters += data.length
    const again = () => new Promise<false>((resolve) => setTimeout(resolve, RETAIN_AGAIN_MS, false).unref())
    for (let attempts = 0, isDone = false; !isDone && attempts < RETAIN_ATTEMPTS; attempts++)
      isDone = await retainResult(jobId, data, tenant).then(() => true, again)
    characters -= data.length
  }
  // A function of its own: in `retain`, a payload that exceeds the bound would stay in memory while it waits.
  return (jobId: string, payload: Pick<IngestJob, 'tenant' | 'threads'>): Promise<void> => {
    const text = JSON.stringify(payload)
    return retain(jobId, characters + text.length > MAX_CHARACTERS ? '' : text, payload.tenant)
  }
}

const KEYS_AT_ONCE = 1_000
/** The results of a failed job, and of one that was retried since. */
const JOB_ANSWERS = ['failure', 'resultBefore'] as const

/** Keys of claims, results and imports. The list of the jobs that completed last stays: it shows what to post again. */
const ANSWERS = /^(claims?|results|newest-results|transient|retained|imports?)(:|$)/

/**
 * Removes the answers about stored threads, for a MongoDB that was restored to an earlier moment, and returns the
 * number of keys removed. Jobs that failed stay, and those that wait: a retry then stores all of their threads. No
 * process may answer or complete jobs meanwhile. If interrupted, call it again.
 */
export async function forgetAnswers(redis: Redis, { prefix, base, jobs }: QueueKeys): Promise<number> {
  let removed = 0
  for (let cursor: string | undefined; cursor !== '0'; ) {
    const [next, keys] = await redis.scan(cursor ?? '0', 'MATCH', `${prefix}:*`, 'COUNT', KEYS_AT_ONCE)
    const answers = keys.filter((key) => key.startsWith(base) && ANSWERS.test(key.slice(base.length)))
    if (answers.length > 0) removed += await redis.unlink(answers)
    const lanes = Object.values(jobs)
    const jobKeys = keys.filter((key) => lanes.some((lane) => key.startsWith(lane) && isJobId(key.slice(lane.length))))
    await Promise.all(jobKeys.map((key) => redis.hdel(key, ...JOB_ANSWERS)))
    cursor = next
  }
  return removed
}
