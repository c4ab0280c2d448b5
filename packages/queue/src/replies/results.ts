// Looks up jobs and results, retains results for callers that have a job's id, and forgets answers after a restore.
import type { JobState, Thread } from '@sluice/contract'
import { asList, openScript } from '@sluice/process/redis'
import type { Job } from 'bullmq'
import type { Redis } from 'ioredis'
import { type IngestJob, isJobId, type JobResult, readProgress, triesShown } from '../job/job.ts'
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

/** Opens the results of jobs. They are stored outside BullMQ, which would prune transient and retained ones alike. */
export function createResults(redis: Redis, { base, jobs }: QueueKeys) {
  const find = openScript(redis, new URL('./results.lua#find', import.meta.url))
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
    /** Returns a retained result, the job's payload, when (ms since 1970) and at which try the job completed. */
    async findRetained(jobId: string) {
      const { result: text, data, at, attempts } = await redis.hgetall(`${base}retained:${jobId}`)
      if (text === undefined || data === undefined) return undefined
      const result: JobResult = JSON.parse(text)
      return { result, data, at: Number(at), attempts: Number(attempts) }
    },
  }
}

/** A job as its caller may see it. */
export interface FoundJob {
  tenant: string
  thread: Thread
  state: JobState
  changedAt: Date
  attempts: number
  result?: JobResult
}

type RetainedResults = Pick<Results, 'findRetained'>

/** Finds a job of one thread by its id: its retained result, else BullMQ's job. */
export async function findJob(queues: Queues, results: RetainedResults, id: string): Promise<FoundJob | undefined> {
  const completed = await findCompleted(results, id)
  if (completed !== undefined) return completed
  const job = (await queues.interactive.getJob(id)) ?? (await queues.bulk.getJob(id))
  // The job may have completed between the two lookups.
  return (job && (await describe(job))) ?? findCompleted(results, id)
}

async function findCompleted(results: RetainedResults, id: string): Promise<FoundJob | undefined> {
  const retained = await results.findRetained(id)
  if (retained === undefined) return undefined
  const { data, at, attempts, result } = retained
  const about = ofOneThread(JSON.parse(data))
  return about && { ...about, state: 'completed', changedAt: new Date(at), attempts, result }
}

async function describe(job: Job<IngestJob>): Promise<FoundJob | undefined> {
  const about = ofOneThread(job.data)
  if (about === undefined) return undefined
  const state = await job.getState()
  if (state === 'unknown') return undefined
  const { timestamp, finishedOn = timestamp, processedOn = timestamp, failedReason: failure } = job
  const attempts = triesShown(job.attemptsMade)
  if (state === 'failed') {
    const result = { receipts: [null], failure }
    return { ...about, state, changedAt: new Date(finishedOn), attempts, result }
  }
  if (state === 'active') return { ...about, state, changedAt: new Date(processedOn), attempts: attempts + 1 }
  const { waitingSince = timestamp } = readProgress(job.progress)
  return { ...about, state: 'waiting', changedAt: new Date(waitingSince), attempts }
}

/** Undefined for a job of several threads: only operators need its id. */
function ofOneThread({ tenant, threads }: IngestJob): { tenant: string; thread: Thread } | undefined {
  const [thread] = threads
  return thread === undefined || threads.length > 1 ? undefined : { tenant, thread }
}

/** While Redis is away, retaining is tried again after this pause, at most RETAIN_TRIES times: for five minutes. */
const TRY_EVERY_MS = 500
const RETAIN_TRIES = 600
/**
 * The most characters of all payloads that wait for Redis. A job beyond it is marked without its payload: if it
 * completes before Redis answers, its result is not retained.
 */
const MAX_CHARACTERS = 32 * 1024 * 1024

/** Makes a function that has a job's result retained as soon as Redis answers: see `retainResult`. Never throws. */
export function createRetainLater({ retainResult }: Pick<Results, 'retainResult'>) {
  let characters = 0
  async function retain(jobId: string, data: string, tenant: string): Promise<void> {
    characters += data.length
    const again = () => new Promise<false>((resolve) => setTimeout(resolve, TRY_EVERY_MS, false).unref())
    for (let tries = 0, isDone = false; !isDone && tries < RETAIN_TRIES; tries++)
      isDone = await retainResult(jobId, data, tenant).then(() => true, again)
    characters -= data.length
  }
  // A function of its own: in `retain`, a payload beyond the bound would stay in memory while it waits.
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
