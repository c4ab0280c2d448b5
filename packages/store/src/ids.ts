// Computes the ids of sources and quotes from the request alone, and the list keys that sort a
// tenant's sources.
import { hash } from 'node:crypto'
import { contentOf, type SentQuote } from '@sluice/contract'
import type { StoreRequest } from './documents.ts'

/** An id has 144 bits: two names do not collide by chance, and base64url needs no padding. */
const ID_LENGTH = 24

/**
 * Hashes the JSON of a tuple. If the parts were only joined, two different tuples could form the
 * same text.
 */
export function hashTuple(...parts: unknown[]): string {
  return hash('sha256', JSON.stringify(parts), 'base64url').slice(0, ID_LENGTH)
}

/** Returns the id of a source, which is computed and never looked up. */
export function sourceIdOf(
  tenant: string,
  source: Readonly<Record<'service' | 'externalId', string>>,
): string {
  return hashTuple(tenant, source.service, source.externalId)
}

export function sourceIdOfRequest(request: StoreRequest): string {
  return 'deletes' in request
    ? request.deletes.sourceId
    : sourceIdOf(request.tenant, request.thread.source)
}

/**
 * Returns the id of the source to which a document's id belongs: a quote's id begins with its
 * source's id.
 */
export function sourceIdIn(documentId: string): string {
  return documentId.slice(0, ID_LENGTH)
}

/** Returns what a quote's id has after the id of its source. */
export function inSource(quoteId: string): string {
  return quoteId.slice(ID_LENGTH)
}

export function compareIds(one: { _id: string }, other: { _id: string }): number {
  return one._id < other._id ? -1 : 1
}

/** The digits of ids, in the order in which MongoDB sorts them. */
export const ID_DIGITS = '-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz'
/** Sorts after every character of an id. */
export const AFTER_IDS = '~'

/**
 * Returns the filter for the quotes of these sources (at least one). An index of `sourceId` or of
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
 * List keys sort as text, so times in milliseconds are padded to this length. It is enough for
 * 30,000 years.
 */
const MS_DIGITS = 15

/** Returns the prefix that all list keys of a tenant share, and no other tenant's keys have. */
export function listPrefixOf(tenant: string): string {
  return `${hashTuple(tenant)}/`
}

/**
 * Returns the part of a `listKey` after its prefix. A cursor without an id sorts before all others
 * of its date.
 */
export function listCursorOf(at: Date, id = ''): string {
  return `${String(at.getTime()).padStart(MS_DIGITS, '0')}/${id}`
}

/** Returns `meta.listKey` of a source. */
export function listKeyOf(tenant: string, acceptedAt: Date, id: string): string {
  return listPrefixOf(tenant) + listCursorOf(acceptedAt, id)
}

/** Returns the id of a quote with an externalId. */
export function quoteIdOf(sourceId: string, externalId: string): string {
  return sourceId + hashTuple('externalId', externalId)
}

/**
 * Returns the ids of a request's quotes, which differ. Each is computed from the quote's
 * externalId. Without an externalId, it is the one that an export wrote, or it is computed from the
 * quote's content and from the number of equal quotes before it in the request.
 */
export function quoteIdsOf(sourceId: string, quotes: readonly SentQuote[]): string[] {
  const equalsBefore = new Map<string, number>()
  const exported: number[] = []
  const ids = quotes.map((quote, at) => {
    if (quote.externalId !== undefined) return quoteIdOf(sourceId, quote.externalId)
    if (quote.exportedId !== undefined) {
      exported.push(at)
      return sourceId + quote.exportedId
    }
    const content = contentOf(quote)
    const before = equalsBefore.get(content) ?? 0
    equalsBefore.set(content, before + 1)
    return sourceId + hashTuple('content', content, before)
  })
  if (exported.length > 0) replaceRepeated(ids, exported)
  return ids
}

/** Replaces ids that a caller has made up, if the request has them twice. */
function replaceRepeated(ids: string[], exported: readonly number[]): void {
  const isExported = new Set(exported)
  const taken = new Set(ids.filter((_, at) => !isExported.has(at)))
  for (const at of exported) {
    let id = ids[at] ?? ''
    while (taken.has(id)) id = sourceIdIn(id) + hashTuple('repeated', id, at)
    taken.add(id)
    ids[at] = id
  }
}
