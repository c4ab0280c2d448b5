// The front door: what people see of a queue and do with it.
export { OperationsFullError } from './failed/operations.ts'
export type { StoredThread, Writing } from './find/find-stored.ts'
export type { JobDetail } from './jobs/read-job.ts'
export { createDurations, type Durations } from './overview/durations.ts'
export { type Reading, startHeartbeats } from './overview/heartbeats.ts'
export { type CountedSpan, createReadHistory, peaksOf } from './overview/history.ts'
export { createReadOverview, createReadState, type QueueState } from './overview/overview.ts'
export * from './view.ts'
