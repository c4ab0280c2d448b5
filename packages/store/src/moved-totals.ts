import type { QuoteTotals } from './count-quotes.ts'
import type { QuoteDraft } from './merge-quote.ts'

/** What these writes make of a source's totals. */
export function movedTotals({ wordCount, quoteCount }: QuoteTotals, writes: readonly QuoteDraft[]): QuoteTotals {
  for (const { stored, document } of writes) {
    wordCount += document.wordCount - (stored?.wordCount ?? 0)
    if (stored === undefined) quoteCount += 1
  }
  return { wordCount, quoteCount }
}
