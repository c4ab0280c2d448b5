// Entry point of the client. The types of requests and answers come from the contract.
export type { CallOptions } from './abort.ts'
export {
  type Client,
  type ClientOptions,
  createClient,
  type ExportOptions,
  type ExportPage,
  type ListOptions,
  type PageOptions,
  pagesOf,
  type ServiceLimits,
} from './client.ts'
export type * from './contract.ts'
export type { DeleteManyOptions, DeleteOptions } from './delete-sources.ts'
export { type FailedItem, type ItemResult, isFinal, type StoredItem } from './post-batch.ts'
export type { PostManyOptions, Threads } from './post-many.ts'
export type { PostOptions, PostResult } from './post-thread.ts'
export { SluiceProblem, SluiceUnreachable } from './request-errors.ts'
export type { Retry, RetryOptions } from './retries.ts'
export type { SourceName, SourceReference } from './transport.ts'
