// The handlers that a consumer calls for each job, and the possible results of a try.
import type { FetchedJob } from './job.ts'
import type { Receipt } from './receipt.ts'

/** The store is away. Nothing is wrong with the job: it goes back to waiting and loses no try. */
export interface Away {
  away: true
}

/** The result of working on a job. Throwing means another try. */
export type Worked = { receipts: Receipt[] } | Away

/** A try that failed. `final`: the job gets no other one. */
export interface FailedTry {
  failure: Error
  final: boolean
}

/** Handlers of failures. */
export interface FailureHandlers {
  /**
   * Is awaited before a job fails for good. If the store is away, the job goes back to waiting and loses no try. If it throws, the error is reported
   * and the job fails all the same.
   */
  beforeFinalFailure: (job: FetchedJob) => Promise<Away | undefined>
  onFailed: (job: FetchedJob, reason: string, final: boolean) => void
  /** Receives the id of a failed job that was removed because failed jobs exceed their bound. */
  onEvicted: (jobId: string) => void
  onError: (error: Error) => void
}

/** The handlers of each job. */
export interface JobHandlers extends FailureHandlers {
  work: (job: FetchedJob) => Promise<Worked>
}
