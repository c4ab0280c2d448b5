// The types of requests and answers, taken from the contract in this repository. The packed client
// needs no other package: there, `build.program.ts` writes them out in place of this file.
import type { ImportProgressAnswer, RefusedItemSchema, SourcePage, Static } from '@sluice/contract'

export type {
  AcceptedAnswer,
  DeletedItem,
  DeletionAnswer,
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
  StoredItem,
  ThreadAnswer,
  ThreadRequest,
  ValidationError,
  ValidationErrorCode,
  Warning,
} from '@sluice/contract'
export type ImportProgress = ImportProgressAnswer
export type RefusedItem = Static<typeof RefusedItemSchema>
export type StoredQuote = SourcePage['quotes'][number]
export type StoredSource = SourcePage['source']
