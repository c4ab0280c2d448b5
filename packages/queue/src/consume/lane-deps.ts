// The dependencies of a consumer's lanes, and the outcomes of a try.
import type { Outcome } from '@sluice/contract'
import type { Job } from 'bullmq'
import type { Redis } from 'ioredis'
import type { createRecordTry } from '../failed/failed-set.ts'
import type { CompletedJob, FetchedJob, IngestJob, Lane, LockedJob, Receipt } from '../job/job.ts'
import type { QueueKeys } from '../job/lanes.ts'
import type { createLocks } from './bullmq-worker.ts'
import type { Pauses } from './exclusive-run.ts'

/** The store is away. Nothing is wrong with the job: it goes back to waiting and loses no try. */
export interface Away {
  away: true
}

/** The result of a try. If the work throws, the try has failed: the job gets another one or fails for good. */
export type Worked = { receipts: Receipt[] } | Away

/** A try that failed. `final`: the job gets no further try. */
export interface FailedTry {
  failure: Error
  final: boolean
}

/** The options of a consumer that its lanes need, too. */
export interface LaneOptions {
  keys: QueueKeys
  /** A connection that retries. Each lane opens another one to the same server, for commands that block. */
  redis: Redis
  /** Resolves when this worker can use jobs of the lane. Until then it fetches none; other workers may. */
  ready: (lane: Lane) => Promise<void>
  work: (job: FetchedJob) => Promise<Worked>
  /** Called before a job fails for good. `Away` puts the job back. If it throws, the job fails all the same. */
  beforeFinalFailure: (job: FetchedJob) => Promise<Away | undefined>
  onFailed: (job: FetchedJob, failure: Error, final: boolean) => void
  /** Counts each stored thread once, when its job has completed or failed for good. */
  stored: { inc(labels: { outcome: Outcome }): void }
  onError: (error: Error) => void
}

/** What both lanes of a consumer need. */
export interface LaneDeps extends LaneOptions {
  complete: (job: CompletedJob) => Promise<unknown>
  /** The bounds of what a lane locks at a time. */
  most: Pick<Capacity, 'jobs' | 'bytes'>
  /** Returns BullMQ's own view of a job. Only rare cases need it. */
  find: (id: string) => Promise<Job<IngestJob> | undefined>
  pauses: Pauses
  /** Resolves when the process runs no job but this one. */
  othersDone: (job: LockedJob) => Promise<unknown>
  recordTry: ReturnType<typeof createRecordTry>
  setTries: ReturnType<typeof createLocks>['setTries']
}

/** A worker's free capacity for jobs of one lane. */
export interface Capacity {
  jobs: number
  /** Of the jobs' data. */
  bytes: number
  /** The worker has no job of the lane, so it may fetch one that exceeds the bytes. */
  isEmpty: boolean
}
