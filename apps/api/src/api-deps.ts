// The dependencies that `main.ts` passes to the API's parts, metrics included.
import type { Limits } from '@sluice/contract'
import type { Logger, Metrics, Readiness } from '@sluice/ops'
import type {
  Claims,
  createRetainLater,
  Enqueuer,
  FailedJobs,
  FoundJob,
  Imports,
  JobResult,
  Operations,
  Quota,
  Redis,
  ReplyListener,
} from '@sluice/queue'
import type { Keyring } from '@sluice/store/keys'
import type { SourceReader } from '@sluice/store/read'
import type { BodyMemory, BodyParser, Budget, watchLoopDelay } from './overload.ts'

/** All dependencies, in one flat list. Each part picks those that it needs. */
export interface ApiDeps {
  log: Logger
  metrics: ApiMetrics
  keyring: Pick<Keyring, 'find'>
  /** The quota of a key without limits of its own. */
  quota: Omit<Quota, 'keyId'>
  redis: Pick<Redis, 'status'>
  enqueuer: Pick<Enqueuer, 'enqueue' | 'admit' | 'charge' | 'quotaLeft'>
  replyListener: Pick<ReplyListener, 'replica' | 'wait'>
  claims: Claims
  /** The job's result, or undefined: then its result is retained for the caller that gets the job's id. Never throws. */
  retainResult: (jobId: string) => Promise<JobResult | undefined>
  /** Has a result retained as soon as Redis answers again. Never throws. */
  retainLater: ReturnType<typeof createRetainLater>
  /** @throws {QueueUnavailableError} */
  findJob: (jobId: string) => Promise<FoundJob | undefined>
  readSource: SourceReader
  /** The reads of sources that run at the same time, counted as one byte each. */
  readSpace: Budget
  imports: Imports
  failedJobs: FailedJobs
  operations: Operations
  /** Checks for operations at once, if this replica runs them. */
  wakeOperations: () => void
  parser: Pick<BodyParser, 'thread' | 'array'>
  bodyMemory: Pick<BodyMemory, 'reserve'>
  /** The disk space of all unread answers of imports. */
  spillSpace: Budget
  loopDelay: ReturnType<typeof watchLoopDelay>
  limits: ApiLimits
  readiness: () => Promise<Readiness>
  /** Aborts when the process has to stop: from then on each answer is the last of its connection. */
  stopping: AbortSignal
  /** Aborts at the end of the grace time, when open requests must be answered. */
  graceOver: AbortSignal
}

/** The bounds that the settings give. */
export interface ApiLimits extends Limits {
  /** The longest that a caller waits for its job, in seconds. */
  waitSeconds: number
  /** Size of an import, inflated, in bytes. */
  importBytes: number
  /** The bounds of the queue, and the part of each that one tenant may take. */
  queueThreads: number
  queueBytes: number
  waitingSeconds: number
  tenantShare: number
  /** The quota of a key without limits of its own. */
  quotesPerSecond: number
  burstQuotes: number
  /** POSTs are refused while the event loop lags by more, in ms. */
  maxLoopDelayMs: number
}

export type ApiMetrics = ReturnType<typeof createApiMetrics>

/** Creates the metrics of an API replica. */
export function createApiMetrics(metrics: Metrics) {
  return {
    requests: metrics.counter({ name: 'requests_total', help: 'HTTP requests, by status.', labels: ['status'] }),
    requestTime: metrics.histogram({
      name: 'request_seconds',
      help: 'Time from the head of a request to its answer.',
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    }),
    problems: metrics.counter({
      name: 'problems_total',
      help: 'Requests that were answered with a problem, by its code.',
      labels: ['code'],
    }),
    accepted: metrics.counter({ name: 'accepted_total', help: 'Threads that were enqueued.' }),
    failedJobsMoved: metrics.counter({
      name: 'failed_jobs_moved_total',
      help: 'Failed jobs that operators had retried or discarded.',
      labels: ['kind'],
    }),
    enqueueTime: metrics.histogram({
      name: 'enqueue_seconds',
      help: 'Time that Redis took to stamp a request and add its job.',
      buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2],
    }),
  }
}

/** Registers the load of the queue, which each scrape asks Redis for. */
export function measureLoad(metrics: Metrics, load: Enqueuer['load']): void {
  const gauges = [
    { name: 'queue_threads', help: 'Threads that are accepted and not yet completed.', field: 'threads' },
    { name: 'queue_bytes', help: 'Bytes of Redis that these threads take.', field: 'bytes' },
    { name: 'queue_interactive_threads', help: 'Those of them for which a caller waits.', field: 'interactive' },
  ] as const
  for (const { name, help, field } of gauges)
    metrics.sampledGauge({ name, help, read: async () => (await load())[field] })
}
