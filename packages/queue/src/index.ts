// The front door of the queue.
export type { Redis } from 'ioredis'
export { openQueue, type QueueKeys, queueKeys, readShownJob } from './bullmq-layout/queue-keys.ts'
export { type Consumer, createConsumer } from './consume/consume.ts'
export { asError, PartlyStoredError } from './consume/fail-job.ts'
export type { Away, Worked } from './consume/lane-deps.ts'
export { createEnqueuer, type Enqueuer } from './enqueue/enqueue.ts'
export { openReplication, type Replication } from './enqueue/replication.ts'
export type { FailedJobs } from './failed/failed-set.ts'
export { type Operations, OperationsFullError, runOperations } from './failed/operations.ts'
export { asViewersSee } from './failed/reasons.ts'
export { SearchesFullError } from './find/find.ts'
export type { FoundImport, ImportProblem, ListedImport } from './imports/imports.ts'
export {
  type FetchedJob,
  type IngestJob,
  isJobId,
  type JobResult,
  LANES,
  type Lane,
  newJobId,
  type Receipt,
} from './job/job.ts'
export { makeReceipt, readReceipt } from './job/receipt.ts'
export { createLoadAudit, type LoadAudit, type Quota } from './load/queue-load.ts'
export {
  AcceptanceUnknownError,
  IdempotencyKeyReusedError,
  orUnavailable,
  QueueFullError,
  QueueUnavailableError,
  RateLimitedError,
} from './load/refusals.ts'
export { type Reading, startHeartbeats } from './overview/heartbeats.ts'
export { createReadHistory, peaksOf } from './overview/history.ts'
export { type OperatorAccess, openOperatorAccess } from './overview/operator-access.ts'
export { ALIVE_MS, createReadOverview, createReadState, type QueueState } from './overview/overview.ts'
export { LAYOUT, watchLayout } from './redis/layout.ts'
export { type QueueAddress, readRedisUrl } from './redis/primary.ts'
export {
  connectFailFast,
  connectLike,
  connectRetrying,
  infoField,
  pingRedis,
  redisFaults,
  watchRedis,
} from './redis/redis-connections.ts'
export { createGroupCommit, observeCommands } from './redis/script.ts'
export { claimName } from './replies/claims.ts'
export { type FoundJob, findJob } from './replies/job-lookup.ts'
export { openReplyListener, REPLY_SILENT_MS, type ReplyListener } from './replies/reply-listener.ts'
export { createResults, createRetainLater, forgetAnswers, type Results } from './replies/results.ts'
export {
  createSessions,
  isWellFormedLink,
  LINK_MS,
  SESSION_MS,
  type Sessions,
  type Visitor,
} from './sessions/sessions.ts'
