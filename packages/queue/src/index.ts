// Entry point of the queue.

export { readJob } from './bullmq-layout/layout.ts'
export { type Consumer, createConsumer } from './consume/consume.ts'
export { type StoreUnavailable, asError, PartlyStoredError, UncompletedError, type Worked } from './consume/fail-job.ts'
export { createFetchJobs, readRecent } from './consume/fetch-and-complete.ts'
export { createEnqueuer, type Enqueuer } from './enqueue/enqueue.ts'
export { openReplication, type Replication } from './enqueue/replication.ts'
export { createMoveFailed, readAttempts } from './failed/failed-set.ts'
export {
  createImports,
  type FoundImport,
  type ImportEnd,
  type ImportProblem,
  type ListedImport,
} from './imports/imports.ts'
export {
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
  type Receipt,
  readProgress,
  readReceipt,
  attemptsShown,
} from './job/job.ts'
export { openQueue, type QueueKeys, queueKeys, readShownJob } from './job/lanes.ts'
export { createLoadAudit, type LoadAudit, type Quota } from './load/queue-load.ts'
export {
  AcceptanceUnknownError,
  IdempotencyKeyReusedError,
  orUnavailable,
  QueueFullError,
  QueueUnavailableError,
  RateLimitedError,
} from './load/refusals.ts'
export { claimName } from './replies/claims.ts'
export { openReplyListener, REPLY_SILENT_MS, type ReplyListener } from './replies/reply-listener.ts'
export {
  createResults,
  createRetainLater,
  type FoundJob,
  findJob,
  forgetAnswers,
  type Results,
} from './replies/results.ts'
export { checkFedStore, feedStore, nameOf, noteOtherStore, OtherStoreError, readFedStore } from './store-of-queue.ts'
