// The front door `@sluice/store`: what apps and tests use of the store.

export type {
  QuoteDocument,
  SourceDocument,
  StoredAnswer,
  StoredThread,
  StoreRequest,
  ThreadPlan,
  WriterDocument,
} from './documents.ts'
export { inputThread } from './merge/drafts.ts'
export { planThread } from './merge/plan.ts'
export type {
  CollectionName,
  Documents,
  ReadConcern,
  Runtime,
  SourceTotals,
  StoreCommands,
  UpdateStatement,
  WriteReply,
} from './mongodb/commands.ts'
export { connectStore, PROBE_MS, probeStore, type StoreConnection } from './mongodb/connect-store.ts'
export { mongoCommands, processRuntime } from './mongodb/mongo-commands.ts'
export { indexesOf } from './mongodb/rare-commands.ts'
export { isRefused, RefusedWriteError, StoreAwayError } from './mongodb/store-errors.ts'
export { type Finding, forgetDigests, repairSources } from './write/doctor.ts'
export { PausedTooLongError } from './write/guarded-writes.ts'
export { type BatchStore, createBatchStore } from './write/store-batch.ts'
