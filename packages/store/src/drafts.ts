import { effectiveScore, type Outcome } from '@sluice/contract'
import { ObjectId } from 'mongodb'
import type { QuoteDocument, QuoteValues, SourceDocument, SourceValues } from './documents.ts'
import type { RequestStamp, SourceName } from './requests.ts'

// Documents in memory on their way into the store: the plan for a thread, and how a request becomes a new document.

/** A source or a quote as this batch will store it. */
export interface Draft<Stored> {
  /** The document as it was read; absent where there was none. */
  stored?: Stored
  document: Stored
  /** A field has another value than before. */
  changed: boolean
  /** A field counts as given later than before. Where nothing changed, only stamps need a write. */
  advanced: boolean
}

export type SourceDraft = Draft<SourceDocument>
export type QuoteDraft = Draft<QuoteDocument>

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

/** The version of a document that was not written yet. */
const UNWRITTEN = new ObjectId('000000000000000000000000')
/** The word count of a text that was not counted yet. */
export const UNCOUNTED = -1

/** The draft of a source that is not stored. */
export function newSource({ id, ...name }: SourceName, input: SourceValues, request: RequestStamp): SourceDraft {
  const acceptedAt = acceptedAtOf(request.stamp)
  const { values, derived } = withDerived(input, acceptedAt)
  return {
    document: {
      _id: id,
      ...name,
      ...values,
      acceptedAt,
      status: 'TRANSCRIBED',
      wordCount: 0,
      quoteCount: 0,
      meta: { version: UNWRITTEN, stamp: request.stamp, ...derived, insertedBy: request.id },
    },
    changed: true,
    advanced: true,
  }
}

/** Where a quote belongs. `cover` is the source's `meta.cover`, 0 where it has none. */
export interface QuotePlace {
  id: string
  sourceId: string
  cover: number
}

/** The draft of a quote that is not stored. */
export function newQuote(place: QuotePlace, input: QuoteValues, request: RequestStamp): QuoteDraft {
  const { values, derived } = withDerivedScore(input)
  return {
    document: {
      _id: place.id,
      sourceId: place.sourceId,
      ...values,
      wordCount: UNCOUNTED,
      meta: {
        version: UNWRITTEN,
        stamp: request.stamp,
        ...derived,
        insertedBy: request.id,
        ...(place.cover > 0 && { cover: place.cover }),
      },
    },
    changed: true,
    advanced: true,
  }
}

/** Order stamps are microseconds since 1970, so a stamp is also the moment of acceptance. */
export function acceptedAtOf(stamp: number): Date {
  return new Date(Math.floor(stamp / 1000))
}

interface Derived {
  derived?: string[]
}

/** Adds the fields of a source that no request gave: the date from the moment of acceptance, and the score from the votes. */
export function withDerived(
  input: SourceValues,
  acceptedAt: Date,
): { values: SourceValues & { createdAt: Date }; derived: Derived } {
  const { values, derived } = withDerivedScore({ ...input, createdAt: input.createdAt ?? acceptedAt })
  if (input.createdAt !== undefined) return { values, derived }
  return { values, derived: { derived: ['createdAt', ...(derived.derived ?? [])] } }
}

/** Adds the score that follows from the votes, where no request gave one. */
export function withDerivedScore<Values extends QuoteValues | SourceValues>(
  values: Values,
): { values: Values; derived: Derived } {
  const score = effectiveScore(values)
  if (values.score !== undefined || score === undefined) return { values, derived: {} }
  return { values: { ...values, score }, derived: { derived: ['score'] } }
}
