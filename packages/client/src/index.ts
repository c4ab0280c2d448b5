// The front door of the client.
export {
  type Client,
  type ClientOptions,
  createClient,
  type ListOptions,
  type PageOptions,
  type ServiceLimits,
  type SourceName,
  type WaitOptions,
} from './client.ts'
export type {
  AcceptedAnswer,
  Fault,
  FaultCode,
  JobAnswer,
  JobState,
  LimitName,
  ListedSource,
  Outcome,
  Problem,
  ProblemCode,
  QuoteAnswer,
  QuoteRequest,
  Service,
  SourceAnswer,
  SourceList,
  SourcePage,
  StoredQuote,
  StoredSource,
  ThreadAnswer,
  ThreadRequest,
  Warning,
} from './contract.ts'
export { type FailedItem, type ItemResult, isFinal, type StoredItem } from './post-batch.ts'
export type { PostManyOptions, Threads } from './post-many.ts'
export type { PostOptions, PostResult } from './post-thread.ts'
export { SluiceProblem, SluiceUnreachable } from './request-errors.ts'
export type { Retry, RetryOptions } from './retries.ts'
