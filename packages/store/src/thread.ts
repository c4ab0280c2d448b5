// Defines the stages of a thread on its way into the store: request, draft, plan, round, answer.
import type { Outcome, QuoteAnswer, SourceAnswer, SourceFields, Thread } from '@sluice/contract'
import type { QuoteDocument, QuoteValues, SourceDocument, SourceValues } from './documents.ts'

/** One accepted request. */
export interface StoreRequest {
  /** Unique to the request, and the same each time it is delivered. */
  id: string
  tenant: string
  /** Its position in the one order of acceptance, in µs since 1970; unique to the request. */
  stamp: number
  /** An earlier delivery may have written a part of it. */
  redelivered: boolean
  thread: Thread
  /** Absent if it is not known. Equal threads have equal digests. */
  digest?: string
}

/** The part of a request that the merge needs besides its fields. */
export type RequestStamp = Pick<StoreRequest, 'id' | 'stamp' | 'redelivered'>

/** The parts of a source that identify it and never change. */
export interface SourceIdentity {
  id: string
  tenant: string
  service: SourceFields['service']
  externalId: string
}

/** A request with ids and dates. */
export interface InputThread extends RequestStamp {
  identity: SourceIdentity
  source: SourceValues
  quotes: QuoteValues[]
  quoteIds: string[]
  digest?: string
}

/** A source or a quote as this batch will store it. */
export interface Draft<Stored> {
  /** The document as it was read; absent if none was stored. */
  stored?: Stored
  document: Stored
  /** A field, or the position, has another value than before. */
  changed: boolean
  /** The document needs a write: it changed, or a field has a later stamp than before. */
  advanced: boolean
}

export type SourceDraft = Draft<SourceDocument>
export type QuoteDraft = Draft<QuoteDocument>

/** The place of a quote in the thread's stored source and in the request. */
export interface QuoteContext {
  /** The source's `meta.cover`, or 0. */
  cover: number
  /** The quote's index in the request. */
  index: number
}

/** The identity of a quote that is not stored. */
export interface NewQuote extends QuoteContext {
  id: string
  sourceId: string
}

/** A thread as it was read: its source, and those of its quotes that the requests name. */
export interface StoredThread {
  source?: SourceDocument
  quotes: ReadonlyMap<string, QuoteDocument>
}

/** The outcomes of one request, quotes in request order. */
export interface RequestOutcome {
  source: Outcome
  quotes: Outcome[]
}

/** The writes that put all of the requests into the store, and the outcomes to answer. */
export interface ThreadPlan {
  source: SourceDraft
  /** Every quote that the requests name, as it will be stored. */
  quotes: ReadonlyMap<string, QuoteDraft>
  /** The quotes to write. A text that is new has the word count `UNCOUNTED`. */
  quoteWrites: readonly QuoteDraft[]
  /** One for each request, in their order. */
  outcomes: RequestOutcome[]
}

/** The answer to a request: its thread as it is now stored. */
export interface StoredAnswer {
  source: SourceAnswer
  quotes: QuoteAnswer[]
}

/** All requests of a batch for one thread. */
export interface ThreadWork {
  id: string
  /** In the order of their stamps. */
  requests: InputThread[]
  /** For each request, the outcomes of the quotes that earlier rounds have written. */
  outcomes: Outcome[][]
  /** An earlier round of this batch may have opened the source, so the thread needs another round until it is stored. */
  mayHaveToken: boolean
}

/** A thread in one round: read and planned. */
export interface ThreadRound {
  work: ThreadWork
  stored: StoredThread
  plan: ThreadPlan
  /** The quotes to write, complete. */
  quoteWrites: readonly QuoteDraft[]
}

/** A thread whose source is open, so that its quotes may be written. */
export interface OpenThread {
  round: ThreadRound
  /** The source as it is stored now. */
  source: SourceDocument
  /**
   * `final`: opened with its final totals and fields. `cover`: reserved; totals and fields are committed after the quotes. `sum`: like `cover`, but the totals are
   * summed.
   */
  kind: 'final' | 'cover' | 'sum'
}
