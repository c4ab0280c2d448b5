// Looks up jobs and their results, retains results for callers that have a job's id, and stores
// them in the claims of idempotency keys.
import { hash } from 'node:crypto'
import type { JobState } from '@sluice/contract'
import { asList, openScript } from '@sluice/process/redis'
import type { Redis } from 'ioredis'
import {
  attemptsShown,
  type CompletedJob,
  type IngestJob,
  type JobResult,
  type Lane,
  readProgress,
} from '../job/job.ts'
import type { QueueKeys, Queues } from '../job/lanes.ts'

/** How long results stay, and how many bytes of Redis they may use. */
export interface ResultBounds {
  /** For results of jobs whose id the caller has. */
  retainedMs: number
  /** For all other results. */
  transientMs: number
  /** For all results together: see complete.lua. */
  resultBytes: number
  /** For the list of recently completed jobs. */
  recentBytes: number
  /** For idempotency keys. */
  claimBytes: number
}

export type Results = ReturnType<typeof createResults>

/** How long a result is kept if it becomes a retained one only after its job has completed. */
const RETAINED_MS = 3_600_000
const IDS_AT_ONCE = 200

/**
 * Opens the results of jobs. They are stored outside BullMQ, which would prune transient and
 * retained results alike.
 *
 * @param largeReads a connection for large replies. On `redis`, callers' posts would wait behind
 * them.
 */
export function createResults(redis: Redis, { base, jobs }: QueueKeys, largeReads = redis) {
  const find = openScript(redis, new URL('./results.lua#find', import.meta.url))
  const look = openScript(redis, new URL('./results.lua#look', import.meta.url))
  const retain = openScript(redis, new URL('./results.lua#retain', import.meta.url))
  return {
    /**
     * Returns the results of the jobs that Redis knows, by id. The result is undefined if a job is
     * not done.
     */
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
     * Returns the job's result. If the job has none yet, makes sure that its result will be
     * retained.
     *
     * @param data the job's payload. If it is passed, a transient result becomes a retained one,
     * for an hour.
     */
    async retainResult(jobId: string, data = '', tenant = ''): Promise<JobResult | undefined> {
      const result = String(
        await retain(base, jobId, data, RETAINED_MS, jobs.interactive, jobs.bulk, tenant),
      )
      return result === '' ? undefined : JSON.parse(result)
    },
    /** Returns the result that this claim has for this job: see `claimName`. */
    async findClaimed(claim: string, jobId: string): Promise<JobResult | undefined> {
      const [claimedBy, result] = await redis.hmget(`${base}claim:${claim}`, 'job', 'result')
      return claimedBy === jobId && typeof result === 'string' ? JSON.parse(result) : undefined
    },
    /**
     * Returns a retained result, the job's payload, and when (ms since 1970) and at which attempt
     * the job completed.
     */
    async findRetained(jobId: string) {
      const { result: text, data, at, attempts } = await redis.hgetall(`${base}retained:${jobId}`)
      if (text === undefined || data === undefined) return undefined
      const result: JobResult = JSON.parse(text)
      return { result, data, at: Number(at), attempts: Number(attempts) }
    },
    /**
     * Reads the payload and the result of a retained job, as JSON, by the connection for large
     * replies.
     */
    async readRetained(jobId: string): Promise<{ data: Buffer; result: Buffer } | undefined> {
      const [data, result] = await largeReads.hmgetBuffer(
        `${base}retained:${jobId}`,
        'data',
        'result',
      )
      return data && result ? { data, result } : undefined
    },
    /** Returns the small facts about a job of one thread: see the part `look` of results.lua. */
    async look(jobId: string): Promise<readonly unknown[]> {
      return asList(await look(base, jobId, jobs.interactive, jobs.bulk))
    },
  }
}

/**
 * While Redis is unavailable, retaining is tried again after this pause, at most RETAIN_ATTEMPTS
 * times (five minutes).
 */
const RETAIN_AGAIN_MS = 500
const RETAIN_ATTEMPTS = 600
/**
 * Bounds the characters of all payloads that wait for Redis. Above it, a job is marked without its
 * payload: if it completes before Redis answers, its result is not retained.
 */
const MAX_CHARACTERS = 32 * 1024 * 1024

/**
 * Makes a function that has a job's result retained as soon as Redis answers: see `retainResult`.
 * Never throws.
 */
export function createRetainLater({ retainResult }: Pick<Results, 'retainResult'>) {
  let characters = 0
  async function retain(jobId: string, data: string, tenant: string): Promise<void> {
    characters += data.length
    const again = () =>
      new Promise<false>((resolve) => setTimeout(resolve, RETAIN_AGAIN_MS, false).unref())
    for (let attempts = 0, isDone = false; !isDone && attempts < RETAIN_ATTEMPTS; attempts++)
      isDone = await retainResult(jobId, data, tenant).then(() => true, again)
    characters -= data.length
  }
  // `retain` does not make the text itself: while it waits, it would keep even a payload that is
  // above the bound in memory.
  return (jobId: string, payload: Pick<IngestJob, 'tenant' | 'threads'>): Promise<void> => {
    const text = JSON.stringify(payload)
    return retain(jobId, characters + text.length > MAX_CHARACTERS ? '' : text, payload.tenant)
  }
}

/**
 * How long a claim stays, unless it is evicted. A claim has the job for which a tenant has used an
 * idempotency key, and that job's result.
 */
export const CLAIM_MS = 24 * 60 * 60 * 1000

/** A job's claim on the key of its request. */
export type Claim = ReturnType<typeof makeClaim>

/**
 * Names a claim by a hash, because a key may be its caller's secret. Equal keys of two tenants have
 * different names.
 */
export function claimName(tenant: string, key: string): string {
  return hash('sha256', JSON.stringify([tenant, key]), 'base64url')
}

/**
 * Makes a job's claim. The lane is part of the fingerprint, because callers that wait get another
 * answer than callers that do not.
 */
export function makeClaim(name: string, lane: Lane, threads: IngestJob['threads']) {
  return { name, fingerprint: `${lane} ${hash('sha256', JSON.stringify(threads), 'base64url')}` }
}

/**
 * Makes a function that stores the results of jobs in their claims. A failed job's result is not
 * stored, so its key can be used again.
 */
export function createRecordClaims(redis: Redis, { base }: QueueKeys, claimBytes: number) {
  const record = openScript(redis, new URL('./claims.lua#record', import.meta.url))
  return async (jobs: readonly Pick<CompletedJob, 'id' | 'data' | 'result'>[]): Promise<void> => {
    let args = jobs.flatMap(({ id, data: { claim, purged = 0 }, result }) =>
      claim === undefined || result.failure !== undefined
        ? []
        : [claim, id, JSON.stringify(result), purged],
    )
    while ((await record(base, CLAIM_MS, claimBytes, ...args)) === 1) args = []
  }
}

/** A job as its caller may see it. */
export interface FoundJob {
  state: JobState
  changedAt: Date
  attempts: number
  /** If the job has completed: how many bytes `readRetained` reads. */
  bytes: number
}

/**
 * Finds a job of one thread by its id, without its payload. Looks for a retained result, then for
 * BullMQ's job.
 */
export async function findJob(
  queues: Queues,
  { look }: Pick<Results, 'look'>,
  tenant: string,
  id: string,
): Promise<FoundJob | undefined> {
  for (let looks = 0; looks < 2; looks++) {
    const [owner, bytes, place, about] = await look(id)
    // Read no more for another tenant, so that it can't distinguish this job from one that does not
    // exist.
    if (owner !== tenant) return undefined
    if (!Array.isArray(about))
      return {
        state: 'completed',
        changedAt: new Date(Number(place)),
        attempts: Number(about),
        bytes: Number(bytes),
      }
    const state = await queues[place === 2 ? 'interactive' : 'bulk'].getJobState(id)
    // The job may have completed after `look`.
    if (state !== 'unknown') return describeFound(state, about)
  }
  return undefined
}

/** @param fields as `timesOf` returns them: see jobs.lua. */
function describeFound(
  state: string,
  [enqueuedAt, fetchedAt, failedAt, failedAttempts, progress]: readonly unknown[],
): FoundJob {
  const attempts = attemptsShown(failedAttempts)
  const since = (at: unknown) => ({ changedAt: new Date(Number(at ?? enqueuedAt)), bytes: 0 })
  if (state === 'failed') return { state, attempts, ...since(failedAt) }
  if (state === 'active') return { state, attempts: attempts + 1, ...since(fetchedAt) }
  return { state: 'waiting', attempts, ...since(readProgress(progress).waitingSince) }
}
