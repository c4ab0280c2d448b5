import type { Outcome } from '@sluice/contract'
import type { QuoteDocument, SourceDocument } from './documents.ts'
import type { QuoteDraft } from './merge-quote.ts'
import type { SourceDraft } from './merge-source.ts'

/** A thread as it was read: its source, and those of its quotes that the requests touch. */
export interface StoredThread {
  source?: SourceDocument
  quotes: ReadonlyMap<string, QuoteDocument>
}

/** What one request is told, quotes in request order. */
export interface RequestOutcome {
  source: Outcome
  quotes: Outcome[]
}

/** What has to be written so that all of the requests are in what is stored. */
export interface ThreadPlan {
  source: SourceDraft
  /** Every quote that the requests touch, as it will be stored. */
  quotes: Map<string, QuoteDraft>
  quoteWrites: QuoteDraft[]
  /** One for each request, in their order. */
  outcomes: RequestOutcome[]
}
