// Computes the ids of sources and quotes from the names that callers give them.
import { hash } from 'node:crypto'
import type { QuoteFields, SourceFields } from '@sluice/contract'

/** 144 bits: two names do not collide by chance, and base64url needs no padding. */
const ID_LENGTH = 24

/** Two tuples never have the same JSON. */
function hashTuple(...parts: unknown[]): string {
  return hash('sha256', JSON.stringify(parts), 'base64url').slice(0, ID_LENGTH)
}

/** Returns the id of a source. It is computed from (tenant, service, externalId), and never looked up. */
export function sourceIdOf(tenant: string, source: Pick<SourceFields, 'service' | 'externalId'>): string {
  return hashTuple(tenant, source.service, source.externalId)
}

/**
 * Returns the ids of a request's quotes, in order. A quote is identified by its externalId or, without one, by its
 * content and the number of equal quotes before it.
 */
export function quoteIdsOf(sourceId: string, quotes: readonly QuoteFields[]): string[] {
  const equalsBefore = new Map<string, number>()
  return quotes.map((quote) => {
    if (quote.externalId !== undefined) return sourceId + hashTuple('externalId', quote.externalId)
    const { speaker, createdAt, replyingTo, text } = quote
    const content = JSON.stringify([speaker, createdAt, replyingTo, text])
    const before = equalsBefore.get(content) ?? 0
    equalsBefore.set(content, before + 1)
    return sourceId + hashTuple('content', content, before)
  })
}
