// Reads a job in any state: waiting, delayed between two attempts, active, failed or completed.
import type { FailedJob, Hit, Outcome } from '@sluice/contract'
import { traceIdOf } from '@sluice/process'
import type { IngestJob, JobProgress, JobResult, Lane, QueueKeys } from '@sluice/queue'
import {
  attemptsShown,
  createResults,
  isJobId,
  LANES,
  nameJob,
  readAttempts,
  readJob,
  readProgress,
  sourceNameOf,
} from '@sluice/queue'
import type { Redis } from 'ioredis'
import { reasonGroupOf } from '../failed/reasons.ts'
import { createScanRecent, NEWEST } from './list-jobs.ts'

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
    const payload: IngestJob = JSON.parse(data)
    const isFailed = failedAt !== undefined
    const facts: Partial<Hit> = {
      state: isFailed ? 'failed' : isDelayed ? 'delayed' : isActive ? 'active' : 'waiting',
      lane,
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
    const payload: IngestJob = JSON.parse(data)
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
      if (!isJobId(id)) return undefined
      for (const lane of LANES) {
        const queued = await readQueued(id, lane)
        if (queued !== undefined) return queued
      }
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
