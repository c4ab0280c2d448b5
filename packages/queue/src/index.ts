// The front door of the queue.
export type { Redis } from 'ioredis'
export { openQueue } from './bullmq.ts'
export { type QueueKeys, queueKeys } from './bullmq-layout/names.ts'
export { readShownJob } from './bullmq-layout/read-shown-job.ts'
export { type Claims, claimName, createClaims } from './claims.ts'
export { connectFailFast, connectRetrying, pingRedis, type RedisChecks, watchRedis } from './connections.ts'
export { type Consumer, type ConsumerOptions, createConsumer } from './consume.ts'
export { createEnqueuer, type Enqueuer, newJobId } from './enqueue.ts'
export { type Away, PartlyStoredError, type Worked } from './fail-job.ts'
export { createFailedJobs, type FailedJobs } from './failed-jobs.ts'
export {
  createImports,
  type FoundImport,
  type ImportCounts,
  type ImportProblem,
  type ImportProgress,
  type Imports,
} from './imports.ts'
export {
  type CompletedJob,
  type FetchedJob,
  type IngestJob,
  type JobResult,
  LANES,
  type Lane,
  type Receipt,
} from './job.ts'
export { createRetainResult, type FoundJob, findJob, isJobId } from './job-lookup.ts'
export { createOperations, type Operations, OperationsFullError, runOperations } from './operations.ts'
export { type Applicant, createLoadAudit, type QueueBounds, type Quota } from './queue-load.ts'
export { makeReceipt, readReceipt } from './receipt.ts'
export {
  AcceptanceUnknownError,
  IdempotencyKeyReusedError,
  orUnavailable,
  QueueFullError,
  QueueUnavailableError,
  RateLimitedError,
} from './refusals.ts'
export { openReplyListener, REPLY_SILENT_MS, type ReplyListener } from './reply-listener.ts'
export { createResults, createRetainLater, type ResultBounds, type Results } from './results.ts'
export { type ChooseGroup, createGroupCommit } from './script.ts'
