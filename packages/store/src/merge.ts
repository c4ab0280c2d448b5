export type { QuoteDocument, SourceDocument } from './documents.ts'
export { type GivenThread, givenThread } from './given-thread.ts'
export { planThread, type StoredThread, type ThreadPlan } from './plan-thread.ts'
export type { StoreRequest } from './store-request.ts'
