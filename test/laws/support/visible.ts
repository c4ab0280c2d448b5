import type { QuoteDocument, SourceDocument } from '@sluice/store'
import type { Visible } from './oracle.ts'

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
