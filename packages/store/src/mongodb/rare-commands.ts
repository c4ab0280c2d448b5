// The store's commands that no thread needs on its usual way: finds of many documents, sums of stored quotes, a walk
// through all sources, indexes.
import type { Db } from 'mongodb'
import { chunksOf, sendAll } from '../chunks.ts'
import type { QuoteDocument, SourceDocument } from '../documents.ts'
import type { CommandOptions, QuoteTotals, SourceTotals, StoreCommands } from './commands.ts'
import { IDS_PER_QUERY, PRIMARY } from './commands.ts'

/** Some 10 MB. Each page costs the development stand-in for MongoDB a walk through the collection. */
const PAGE = { projection: { wordCount: 1, quoteCount: 1, meta: 1 }, sort: { _id: 1 }, limit: 25_000 } as const

const QUERIES_AT_ONCE = 8

/** Finds documents in queries of at most `IDS_PER_QUERY` ids, some of which run at the same time. */
export async function findInQueries<Found>(
  ids: readonly string[],
  query: (some: readonly string[]) => Promise<Found[]>,
): Promise<Found[]> {
  const found: Found[] = []
  await sendAll(chunksOf(ids, IDS_PER_QUERY), QUERIES_AT_ONCE, async (some) => {
    for (const document of await query(some)) found.push(document)
  })
  return found
}

/**
 * Makes these commands.
 *
 * @param within sends a command of this name with a signal, which ends the command when its time is over.
 */
export function rareCommands(
  db: Db,
  within: <Reply>(command: string, send: (signal: AbortSignal) => Promise<Reply>) => Promise<Reply>,
  indexes: Pick<CommandOptions, 'listsSources' | 'searchesQuotes'>,
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
      const create = (collection: string, key: object, name: string) =>
        within('createIndexes', (signal) =>
          db.command({ createIndexes: collection, indexes: [{ key, name }] }, { ...PRIMARY, signal }),
        )
      await create('quotes', { sourceId: 1 }, 'sourceId_1')
      if (indexes.listsSources) await create('sources', { 'meta.listKey': 1 }, 'listKey_1')
      if (!indexes.searchesQuotes) return
      await create('quotes', { externalId: 1 }, 'externalId_1')
      await create('sources', { externalId: 1 }, 'externalId_1')
    },
  }
}
