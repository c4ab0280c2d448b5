import type { QuoteFields, SourceFields } from '@sluice/contract'
import type { StoreRequest } from '@sluice/store'
import { quoteIdsOf, sourceIdOf } from '@sluice/store/ids'

/** What anyone can see of a stored thread. */
export interface Visible {
  source: Record<string, unknown>
  quotes: Record<string, Record<string, unknown>>
}

const segmenter = new Intl.Segmenter('en', { granularity: 'word' })

/** A quote with the place that the first request gave it. */
type PlacedQuote = QuoteFields & { position: string }

/**
 * Processes each request once, in the order of acceptance, in the plainest way: what the store must
 * end as, by thread.
 */
export function expectedThreads(requests: readonly StoreRequest[]): Map<string, Visible> {
  const threads = new Map<
    string,
    { tenant: string; source: SourceFields; acceptedAt: Date; quotes: Map<string, PlacedQuote> }
  >()
  for (const request of requests) {
    const { tenant, stamp } = request
    if ('deletes' in request) {
      const { sourceId, quoteIds } = request.deletes
      const thread = threads.get(sourceId)
      if (thread?.tenant === tenant && quoteIds === undefined) threads.delete(sourceId)
      else if (thread?.tenant === tenant) for (const id of quoteIds ?? []) thread.quotes.delete(id)
      continue
    }
    const { thread } = request
    const id = sourceIdOf(tenant, thread.source)
    const known = threads.get(id)
    const quotes = known?.quotes ?? new Map<string, PlacedQuote>()
    const acceptedAt = known?.acceptedAt ?? new Date(stamp / 1000)
    threads.set(id, { tenant, source: { ...known?.source, ...thread.source }, acceptedAt, quotes })
    const ids = quoteIdsOf(id, thread.quotes)
    thread.quotes.forEach(({ exportedId: _, ...quote }, at) => {
      const before = quotes.get(ids[at] ?? '')
      const position =
        before?.position ?? `${`${stamp}`.padStart(16, '0')}.${`${at}`.padStart(6, '0')}`
      quotes.set(ids[at] ?? '', { ...before, ...quote, position })
    })
  }
  return new Map(
    [...threads].map(([id, { source, acceptedAt, quotes }]) => [
      id,
      seen(source, acceptedAt, quotes),
    ]),
  )
}

function seen(source: SourceFields, acceptedAt: Date, quotes: Map<string, PlacedQuote>): Visible {
  const shown = Object.fromEntries([...quotes].map(([id, quote]) => [id, withScore(dated(quote))]))
  const wordCount = [...quotes.values()].reduce((sum, quote) => sum + words(quote.text), 0)
  const own = withScore({
    ...dated(source),
    createdAt: source.createdAt ? new Date(source.createdAt) : acceptedAt,
  })
  return { source: { ...own, wordCount, quoteCount: quotes.size }, quotes: shown }
}

function dated(fields: SourceFields | QuoteFields): Record<string, unknown> {
  return fields.createdAt === undefined
    ? { ...fields }
    : { ...fields, createdAt: new Date(fields.createdAt) }
}

function withScore(fields: Record<string, unknown>): Record<string, unknown> {
  const { upVotes, downVotes, score } = fields
  if (score !== undefined || (upVotes === undefined && downVotes === undefined)) return fields
  return { ...fields, score: Number(upVotes ?? 0) - Number(downVotes ?? 0) }
}

export function words(text: string): number {
  return [...segmenter.segment(text)].filter((segment) => segment.isWordLike).length
}
