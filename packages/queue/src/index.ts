// Entry point of the queue.

export { readJob } from './bullmq-layout/layout.ts'
export { type Consumer, createConsumer } from './consume/consume.ts'
export {
  asError,
  PartlyStoredError,
  readRecent,
  type StoreUnavailable,
  UncompletedError,
  type Worked,
} from './consume/end-jobs.ts'
export { createFetchJobs, noteSuppressions } from './consume/fetch-jobs.ts'
export {
  createEnqueuer,
  type Enqueuer,
  openReplication,
  type Replication,
} from './enqueue/enqueue.ts'
export { createMoveFailed, readAttempts } from './failed/failed-set.ts'
export {
  createImports,
  type FoundImport,
  type ImportEnd,
  type ImportProblem,
  type ListedImport,
} from './imports/imports.ts'
export {
  attemptsShown,
  type Deletion,
  type FetchedJob,
  type IngestJob,
  idsOfThread,
  isJobId,
  type JobProgress,
  type JobResult,
  LANES,
  type Lane,
  makeReceipt,
  nameJob,
  newJobId,
  type QueuedThread,
  type Receipt,
  readPayload,
  readProgress,
  readReceipt,
  receiptOfDeleted,
  sourceNameOf,
  type ThreadReceipt,
} from './job/job.ts'
export { openQueue, type QueueKeys, queueKeys, readShownJob } from './job/lanes.ts'
export { createLoadAudit, type LoadAudit } from './load/load-copy.ts'
export {
  AcceptanceUnknownError,
  IdempotencyKeyReusedError,
  orUnavailable,
  QueueFullError,
  QueueUnavailableError,
  type Quota,
  RateLimitedError,
} from './load/refusals.ts'
export { createPurge, type Purge, type StoredDeletion } from './purge/purge.ts'
export * from './replies/reply-listener.ts'
export {
  claimName,
  createResults,
  createRetainLater,
  type FoundJob,
  findJob,
  type Results,
} from './replies/results.ts'
export * from './store-of-queue.ts'
