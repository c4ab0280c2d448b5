// Computes the ids of sources and quotes from the request alone, and the list keys that sort a
// tenant's sources.
import { hash } from 'node:crypto'
import { contentOf, type QuoteFields, type SourceFields } from '@sluice/contract'

/** 144 bits: two names do not collide by chance, and base64url needs no padding. */
const ID_LENGTH = 24

/**
 * Hashes the JSON of a tuple: if the parts were only joined, two different tuples could form the
 * same text.
 */
export function hashTuple(...parts: unknown[]): string {
  return hash('sha256', JSON.stringify(parts), 'base64url').slice(0, ID_LENGTH)
}

/** Returns the id of a source, which is computed and never looked up. */
export function sourceIdOf(
  tenant: string,
  source: Pick<SourceFields, 'service' | 'externalId'>,
): string {
  return hashTuple(tenant, source.service, source.externalId)
}

/**
 * Returns the id of a quote's source, or of a source itself: a quote's id begins with the id of its
 * source.
 */
export function sourceIdIn(documentId: string): string {
  return documentId.slice(0, ID_LENGTH)
}

export function compareIds(one: { _id: string }, other: { _id: string }): number {
  return one._id < other._id ? -1 : 1
}

/** Sorts after all characters of ids. */
const AFTER_IDS = '~'

/**
 * Returns the filter of the quotes of these sources (at least one). An index of `sourceId` or of
 * `_id` serves it.
 */
export function quotesOf(...sourceIds: string[]) {
  const sorted = sourceIds.toSorted()
  return {
    sourceId: { $in: sourceIds },
    _id: { $gte: sorted[0] ?? '', $lt: sorted.at(-1) + AFTER_IDS },
  }
}

/**
 * Times in milliseconds are padded to this length, because list keys sort as text. It lasts for
 * 30,000 years.
 */
const MS_DIGITS = 15

/** Returns the prefix that all list keys of a tenant share. No other tenant's keys have it. */
export function listPrefixOf(tenant: string): string {
  return `${hashTuple(tenant)}/`
}

/**
 * Returns the part of a `listKey` after its prefix. A cursor without an id precedes all others of
 * its date.
 */
export function listCursorOf(at: Date, id = ''): string {
  return `${String(at.getTime()).padStart(MS_DIGITS, '0')}/${id}`
}

/** Returns `meta.listKey` of a source. */
export function listKeyOf(tenant: string, acceptedAt: Date, id: string): string {
  return listPrefixOf(tenant) + listCursorOf(acceptedAt, id)
}

/**
 * Returns the ids of a request's quotes, each by its externalId. A quote without one has an id by
 * its content and by the number of equal quotes before it in the request.
 */
export function quoteIdsOf(sourceId: string, quotes: readonly QuoteFields[]): string[] {
  const equalsBefore = new Map<string, number>()
  return quotes.map((quote) => {
    if (quote.externalId !== undefined) return sourceId + hashTuple('externalId', quote.externalId)
    const content = contentOf(quote)
    const before = equalsBefore.get(content) ?? 0
    equalsBefore.set(content, before + 1)
    return sourceId + hashTuple('content', content, before)
  })
}
