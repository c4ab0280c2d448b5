import type { QuoteDocument, SourceDocument } from '@sluice/store'
import type { Visible } from './oracle.ts'

/** Returns the stamp with which a position begins. */
export const stampOf = (position: string): number => Number(position.split('.')[0])

/** What anyone can see of these documents. */
export function visible(source: SourceDocument, quotes: Iterable<QuoteDocument>): Visible {
  const { _id, tenant, acceptedAt, status, meta, ...shown } = source
  return { source: shown, quotes: Object.fromEntries([...quotes].map(visibleQuote)) }
}

function visibleQuote({
  _id,
  sourceId,
  wordCount,
  meta,
  ...shown
}: QuoteDocument): [string, Record<string, unknown>] {
  return [_id, shown]
}
