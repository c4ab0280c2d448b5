export {
  type CollectionName,
  type Documents,
  mongoCommands,
  type SourceTotals,
  type StoreCommands,
  type UpdateStatement,
  type Written,
} from './commands.ts'
export { connectStore, type StoreConnection } from './connect-store.ts'
export { type Findings, repairSources } from './doctor.ts'
export type { QuoteDocument, SourceDocument, WriterDocument } from './documents.ts'
export type { StoredThread, ThreadPlan } from './drafts.ts'
export { planThread } from './plan.ts'
export { inputThread, type StoreRequest } from './requests.ts'
export { processRuntime, type Runtime } from './runtime.ts'
export { type BatchStore, createBatchStore } from './store-batch.ts'
export { StoreUnreachableError } from './store-unreachable-error.ts'
export type { StoredAnswer } from './thread-work.ts'
export { PausedTooLongError } from './write-threads.ts'
