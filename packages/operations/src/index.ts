// The front door: what people see of a queue and do with it.
export type { FailedJobs } from './failed/failed-jobs.ts'
export { createOperations, type Operations, OperationsFullError, runOperations } from './failed/operations.ts'
export { asViewersSee } from './failed/reasons.ts'
export { createFindStored, createReadThread, type ReadThread, type Writing } from './find/find-stored.ts'
export { type Reading, startHeartbeats } from './overview/heartbeats.ts'
export { createReadHistory, peaksOf } from './overview/history.ts'
export { type OperatorAccess, openOperatorAccess } from './overview/operator-access.ts'
export { createReadOverview, createReadState, type QueueState } from './overview/overview.ts'
