import type { Collections } from './collections.ts'

/** What a source keeps of its quotes. */
export interface QuoteTotals {
  wordCount: number
  quoteCount: number
}

/** Sums the stored quotes of each of these sources. */
export async function countQuotes({ quotes }: Collections, sourceIds: string[]): Promise<Map<string, QuoteTotals>> {
  if (sourceIds.length === 0) return new Map()
  const sums = await quotes
    .aggregate<QuoteTotals & { _id: string }>([
      { $match: { sourceId: { $in: sourceIds } } },
      { $group: { _id: '$sourceId', wordCount: { $sum: '$wordCount' }, quoteCount: { $sum: 1 } } },
    ])
    .toArray()
  const totals = new Map<string, QuoteTotals>(sourceIds.map((id) => [id, { wordCount: 0, quoteCount: 0 }]))
  for (const { _id, wordCount, quoteCount } of sums) totals.set(_id, { wordCount, quoteCount })
  return totals
}
