// The front door `@sluice/store`: what apps and tests use of the store.
export type {
  CollectionName,
  Documents,
  PlacedQuote,
  Runtime,
  SourceTotals,
  StoreCommands,
  UpdateStatement,
  WriteReply,
} from './commands.ts'
export { connectStore, PROBE_MS, probeStore, type StoreConnection } from './connect-store.ts'
export { type Finding, type Findings, repairSources } from './doctor.ts'
export type {
  QuoteDocument,
  SourceDocument,
  StoredAnswer,
  StoredThread,
  StoreRequest,
  ThreadPlan,
  WriterDocument,
} from './documents.ts'
export { inputThread } from './drafts.ts'
export { StoreAwayError } from './errors.ts'
export { mongoCommands, processRuntime } from './mongodb.ts'
export { planThread } from './plan.ts'
export { type BatchStore, createBatchStore } from './store-batch.ts'
export { PausedTooLongError } from './write-threads.ts'
