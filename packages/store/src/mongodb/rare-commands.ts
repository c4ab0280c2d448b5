// The store's commands that no thread needs on its usual way: sums of stored quotes, a walk through all sources, indexes.
import type { Db } from 'mongodb'
import type { QuoteDocument, SourceDocument } from '../documents.ts'
import { PRIMARY, type QuoteTotals, type SourceTotals, type StoreCommands } from './commands.ts'

/** Some 10 MB. Each page costs the development stand-in for MongoDB a walk through the collection. */
const PAGE = { projection: { wordCount: 1, quoteCount: 1, meta: 1 }, sort: { _id: 1 }, limit: 25_000 } as const

/**
 * Makes these commands.
 *
 * @param within sends a command of this name with a signal, which ends the command when its time is over.
 */
export function rareCommands(
  db: Db,
  within: <Reply>(command: string, send: (signal: AbortSignal) => Promise<Reply>) => Promise<Reply>,
  listsSources: boolean,
): Pick<StoreCommands, 'sumQuotes' | 'scanSources' | 'createIndexes'> {
  const sources = db.collection<SourceDocument>('sources', PRIMARY)
  const quotes = db.collection<QuoteDocument>('quotes', PRIMARY)
  return {
    sumQuotes(sourceIds) {
      const sum = { _id: '$sourceId', wordCount: { $sum: '$wordCount' }, quoteCount: { $sum: 1 } }
      const stages = [{ $match: { sourceId: { $in: sourceIds } } }, { $group: sum }]
      // A quote that is rolled back must not be in totals that stay.
      const readConcern = { level: 'majority' } as const
      return within('aggregate', (signal) =>
        quotes.aggregate<QuoteTotals & { _id: string }>(stages, { signal, readConcern }).toArray(),
      )
    },
    // In pages, because a cursor that is read slowly has no time limit.
    async *scanSources() {
      for (let after = ''; ; ) {
        const filter = { _id: { $gt: after } }
        const page = await within('find', (signal) => sources.find<SourceTotals>(filter, { ...PAGE, signal }).toArray())
        yield page
        if (page.length < PAGE.limit) return
        after = page.at(-1)?._id ?? after
      }
    },
    async createIndexes() {
      const create = (name: string, indexes: object[]) =>
        within('createIndexes', (signal) => db.command({ createIndexes: name, indexes }, { ...PRIMARY, signal }))
      await create('quotes', [{ key: { sourceId: 1 }, name: 'sourceId_1' }])
      if (listsSources) await create('sources', [{ key: { 'meta.listKey': 1 }, name: 'listKey_1' }])
    },
  }
}
