export type { Redis } from 'ioredis'
export {
  type BatchCounts,
  type Batches,
  type BatchPart,
  type BatchProblem,
  createBatches,
  type FoundBatch,
  PROBLEMS_KEPT,
} from './batches.ts'
export { connectImpatient, connectPatient } from './connect-redis.ts'
export { type Consumer, type ConsumerOptions, createConsumer } from './consumer.ts'
export type { EndedJob, ResultBounds } from './end-jobs.ts'
export type { Ending } from './ending.ts'
export { createEnqueuer, type Enqueuer, newJobId, openQueue } from './enqueuer.ts'
export { EvictionPolicyError, watchEvictionPolicy } from './eviction-policy.ts'
export { createForgetJob } from './forget-job.ts'
export { createGroupCommit, type TakeSome } from './group-commit.ts'
export { type IngestJob, LANES, type Lane, requestIdsOf } from './ingest-job.ts'
export { type FoundJob, findJob } from './job-board.ts'
export { type QueueKeys, queueKeys } from './queue-keys.ts'
export { QueueUnavailableError } from './queue-unavailable-error.ts'
export { makeReceipt, type Receipt, readReceipt } from './receipt.ts'
export { createResults, type Results } from './results.ts'
export { PartlyStoredError, type TakenJob } from './taken-job.ts'
export { openWaitingRoom, type WaitingRoom } from './waiting-room.ts'
export type { Worked } from './work-on-job.ts'
