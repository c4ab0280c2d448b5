// The entry point `@sluice/store`: what apps and tests use of the store.

export type {
  DeletedAnswer,
  DeleteRequest,
  PostRequest,
  QuoteDocument,
  SourceDocument,
  SourceOrTombstone,
  StoreAnswer,
  StoredAnswer,
  StoredThread,
  StoreRequest,
  ThreadPlan,
  WriterDocument,
} from './documents.ts'
export { isLive } from './documents.ts'
export { deletedBy } from './merge/deletions.ts'
export { inputThread } from './merge/drafts.ts'
export {
  allRefused,
  type CollectionName,
  type CommandOptions,
  type Documents,
  type ReadConcern,
  type SourceTotals,
  type StoreCommands,
  type UpdateStatement,
  type WriteReply,
} from './mongodb/commands.ts'
export {
  commitProbe,
  connectStore,
  PROBE_MS,
  reasonBehind,
  type StoreConnection,
} from './mongodb/connect-store.ts'
export { checkLayout, readStore, renewStoreId, StoreLayoutError } from './mongodb/layout.ts'
export {
  indexesFor,
  mongoCommands,
  processRuntime,
  type Runtime,
} from './mongodb/mongo-commands.ts'
export { CommandFailedError, RefusedWriteError, refusalOf } from './mongodb/store-errors.ts'
export { seenQuote } from './seen-quotes.ts'
export {
  type ComparedSource,
  forgetDeletions,
  forgetDigests,
  repairSources,
} from './write/doctor.ts'
export { PausedTooLongError } from './write/guarded-writes.ts'
export { type BatchStore, createBatchStore, planThread } from './write/store-batch.ts'
