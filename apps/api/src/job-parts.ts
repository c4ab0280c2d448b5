import type { Enqueuer, FoundJob, JobResult, ReplyListener } from '@sluice/queue'
import type { ApiMetrics } from './api-metrics.ts'

/** What the handlers that deal with jobs need. */
export interface JobParts {
  enqueuer: Pick<Enqueuer, 'enqueue'>
  room: Pick<ReplyListener, 'replica' | 'wait'>
  /** The job's result, or nothing: then its id may be told. Never throws. */
  tell: (jobId: string) => Promise<JobResult | undefined>
  /** @throws {QueueUnavailableError} */
  findJob: (jobId: string) => Promise<FoundJob | undefined>
  /** @throws {ProblemError} where nothing more can be taken in now. */
  admit: () => void
  metrics: ApiMetrics
  /** The process stops: each answer is its connection's last. */
  isStopping: () => boolean
  /** Aborts when the process can't wait any longer. */
  stopping: AbortSignal
}
