import type { Outcome } from '@sluice/contract'
import type { Said } from './store-request.ts'

const RANK = { unchanged: 0, updated: 1, created: 2 }

/** The stronger of two outcomes, as one request may meet a document more than once. */
export function strongerOutcome(one: Outcome, other: Outcome | undefined): Outcome {
  return other !== undefined && RANK[other] > RANK[one] ? other : one
}

/** What its quotes alone make of a source: it is at least `updated` where one of them was created or updated. */
export function sourceOutcomeFrom(quotes: readonly Outcome[]): Outcome {
  return quotes.every((outcome) => outcome === 'unchanged') ? 'unchanged' : 'updated'
}

/**
 * What a request is told of a stored document. A document names the request that inserted it and the one that changed it last, so a
 * request that is delivered again is told what its first delivery did. Where another one has changed the document since, that can't be
 * known any more, and `updated` is the answer that never hides a change.
 */
export function outcomeOf(
  said: Said,
  stored: { insertedBy: string; changedBy?: string },
  merged: { changed: boolean; advanced: boolean },
): Outcome {
  if (stored.insertedBy === said.id) return 'created'
  if (merged.changed || stored.changedBy === said.id) return 'updated'
  const mayHaveChangedBefore = said.redelivered && !merged.advanced && stored.changedBy !== undefined
  return mayHaveChangedBefore ? 'updated' : 'unchanged'
}
