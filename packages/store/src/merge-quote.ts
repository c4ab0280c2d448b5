import { effectiveScore, type Outcome } from '@sluice/contract'
import { ObjectId } from 'mongodb'
import type { QuoteDocument, QuoteValues } from './documents.ts'
import { mergeValues } from './merge-values.ts'
import { outcomeOf } from './outcome-of.ts'
import type { Said } from './store-request.ts'

/** A stored quote as far as this batch has got with it in memory. */
export interface QuoteDraft {
  stored?: QuoteDocument
  document: QuoteDocument
  changed: boolean
  advanced: boolean
}

/** Marks a document that has not been written yet. */
export const UNWRITTEN = new ObjectId('000000000000000000000000')

/**
 * Merges what a request says of a quote into what is stored of it.
 *
 * @param cover the source's `meta.cover`: see `stampOfQuoteField`.
 */
export function mergeQuote(
  draft: QuoteDraft | undefined,
  place: { id: string; sourceId: string; cover: number },
  given: QuoteValues,
  said: Said,
): { draft: QuoteDraft; outcome: Outcome } {
  if (draft === undefined) return { draft: newQuote(place, given, said), outcome: 'created' }
  const before = draft.document
  const { values, stamps, changed, advanced } = mergeValues<QuoteValues>(
    saidValues(before),
    (name) => stampOfQuoteField(before, name, place.cover),
    given,
    said.stamp,
  )
  const outcome = outcomeOf(said, before.meta, { changed, advanced })
  if (!advanced) return { draft, outcome }
  const { stamps: _older, derived: _derived, ...kept } = before.meta
  const { values: full, derived } = withDerivedScore({ ...values, text: values.text ?? before.text })
  const document: QuoteDocument = {
    _id: before._id,
    sourceId: before.sourceId,
    ...full,
    wordCount: values.text === before.text ? before.wordCount : UNCOUNTED,
    meta: {
      ...kept,
      ...stamps,
      ...derived,
      ...(changed && { changedBy: said.id }),
      ...(place.cover > 0 && { cover: Math.max(place.cover, before.meta.cover ?? 0) }),
    },
  }
  return {
    draft: { ...draft, document, changed: draft.changed || changed, advanced: true },
    outcome,
  }
}

/** The word count of a text that was not counted yet. */
export const UNCOUNTED = -1

/**
 * When a field of a stored quote was last said. A request that covers a whole thread and changes none of its quotes is stamped once, as the
 * source's cover, which counts for every quote that was not written since.
 */
export function stampOfQuoteField({ meta }: QuoteDocument, name: string, cover: number): number {
  const own = meta.stamps?.[name] ?? meta.stamp
  return cover > (meta.cover ?? 0) ? Math.max(own, cover) : own
}

function newQuote(place: { id: string; sourceId: string; cover: number }, given: QuoteValues, said: Said): QuoteDraft {
  const { values, derived } = withDerivedScore(given)
  return {
    document: {
      _id: place.id,
      sourceId: place.sourceId,
      ...values,
      wordCount: UNCOUNTED,
      meta: {
        version: UNWRITTEN,
        stamp: said.stamp,
        ...derived,
        insertedBy: said.id,
        ...(place.cover > 0 && { cover: place.cover }),
      },
    },
    changed: true,
    advanced: true,
  }
}

function withDerivedScore(values: QuoteValues): { values: QuoteValues; derived: { derived?: string[] } } {
  const score = effectiveScore(values)
  if (values.score !== undefined || score === undefined) return { values, derived: {} }
  return { values: { ...values, score }, derived: { derived: ['score'] } }
}

function saidValues(document: QuoteDocument): QuoteValues {
  const { _id, sourceId, wordCount, meta, ...values } = document
  if (meta.derived !== undefined) delete values.score
  return values
}
