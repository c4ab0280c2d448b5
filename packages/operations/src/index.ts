// Entry point: what people see of a queue, and what they can do with it.
export {
  createFindErased,
  type Erasures,
  type Suppressions,
  SuppressionsFullError,
} from './erase/erase-speaker.ts'
export { createOperations, OperationsFullError } from './failed/operations.ts'
export { groupIdOf, reasonWords, SHOWN_REASON } from './failed/reasons.ts'
export type { ThreadPage, Writing } from './find/find.ts'
export { failedJobOf, type JobDetail } from './jobs/jobs.ts'
export {
  duration,
  livingApi,
  loadOf,
  lossWords,
  megabytes,
  NEARLY_FULL,
  pauseWords,
  retentionWords,
  shown,
} from './overview/finding.ts'
export {
  type CountedSpan,
  createReadHistory,
  createReadOverview,
  createReadState,
  peaksOf,
  type QueueState,
  SPANS,
  type Span,
} from './overview/overview.ts'
export { watchRedisLoss } from './overview/redis-loss.ts'
export {
  findDue,
  type RetentionRule,
  readRules,
  removeRules,
  writeRule,
} from './threads/delete-threads.ts'
export * from './view.ts'
