// The entry point `@sluice/store`: what apps and tests use of the store.

export { deletedBy, seenQuote } from './deletions.ts'
export {
  type DeletedAnswer,
  type DeleteRequest,
  isLive,
  type PostRequest,
  type QuoteDocument,
  type SourceDocument,
  type SourceOrTombstone,
  type StoreAnswer,
  type StoredAnswer,
  type StoredThread,
  type StoreRequest,
  type ThreadPlan,
  type WriterDocument,
} from './documents.ts'
export { inputThread } from './merge/drafts.ts'
export { planThread } from './merge/merge.ts'
export {
  allRefused,
  asRefused,
  type CollectionName,
  CommandFailedError,
  type CommandOptions,
  type Documents,
  isUnauthorized,
  type ReadConcern,
  RefusedWriteError,
  refusalOf,
  type SourceTotals,
  type StoreCommands,
  type UpdateStatement,
  type WriteReply,
} from './mongodb/commands.ts'
export {
  checkLayout,
  commitProbe,
  connectStore,
  PROBE_MS,
  readFirstId,
  readStore,
  reasonBehind,
  renewStoreId,
  type StoreConnection,
  StoreLayoutError,
} from './mongodb/connect-store.ts'
export * from './mongodb/mongo-commands.ts'
export * from './write/doctor.ts'
export { PausedTooLongError } from './write/guarded-writes.ts'
export * from './write/store-batch.ts'
