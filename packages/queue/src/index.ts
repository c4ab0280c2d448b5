// The front door of the queue.
export type { Redis } from 'ioredis'
export { createLoadAudit } from './audit-load.ts'
export { type QueueKeys, queueKeys } from './bullmq-layout/names.ts'
export { readShownJob } from './bullmq-layout/read-shown-job.ts'
export { type Claims, claimName, createClaims } from './claims.ts'
export {
  connectFailFast,
  connectRetrying,
  openQueue,
  orUnavailable,
  pingRedis,
  QueueUnavailableError,
} from './connections.ts'
export { type Consumer, type ConsumerOptions, createConsumer } from './consume.ts'
export { createEnqueuer, type Enqueuer, isJobId, newJobId } from './enqueue.ts'
export { PartlyStoredError } from './fail-job.ts'
export { createFailedJobs, type FailedJobs } from './failed-jobs.ts'
export {
  createImports,
  type FoundImport,
  type ImportCounts,
  type ImportProblem,
  type ImportProgress,
  type Imports,
} from './imports.ts'
export { type CompletedJob, type FetchedJob, type IngestJob, LANES, type Lane } from './job.ts'
export type { Away, Worked } from './job-handlers.ts'
export { createRetainResult, type FoundJob, findJob } from './job-lookup.ts'
export type { Applicant, QueueBounds } from './load-copy.ts'
export { createOperations, type Operations, OperationsFullError } from './operations.ts'
export { type JobResult, makeReceipt, type Receipt, readReceipt } from './receipt.ts'
export { type RedisChecks, watchRedis } from './redis-checks.ts'
export {
  AcceptanceUnknownError,
  IdempotencyKeyReusedError,
  QueueFullError,
  type Quota,
  RateLimitedError,
} from './refusals.ts'
export { openReplyListener, REPLY_SILENT_MS, type ReplyListener } from './reply-listener.ts'
export { createResults, type ResultBounds, type Results } from './results.ts'
export { createRetainLater } from './retain-later.ts'
export { runOperations } from './run-operations.ts'
export { type ChooseGroup, createGroupCommit } from './script.ts'
