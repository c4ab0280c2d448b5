// The store's commands that no thread needs on its usual way: finds of many documents, sums of stored quotes, a walk
// through all sources, indexes.
import type { Db, Timestamp } from 'mongodb'
import { chunksOf, sendAll } from '../chunks.ts'
import type { SourceDocument } from '../documents.ts'
import type { CommandOptions, SourceTotals, StoreCommands } from './commands.ts'
import { IDS_PER_QUERY, PRIMARY } from './commands.ts'
import { asStoreAway, StoreAwayError } from './store-errors.ts'

/** Some 10 MB. Each page costs the development stand-in for MongoDB a walk through the collection. */
const PAGE = { projection: { wordCount: 1, quoteCount: 1, meta: 1 }, sort: { _id: 1 }, limit: 25_000 } as const

const QUERIES_AT_ONCE = 8

/** The indexes that workers create, by collection: their names, each with its one field. No collection without one. */
export function indexesOf({ listsSources, searchesQuotes }: Pick<CommandOptions, 'listsSources' | 'searchesQuotes'>) {
  const externalId = searchesQuotes && { externalId_1: 'externalId' }
  const quotes: Record<string, string> = { sourceId_1: 'sourceId', ...externalId }
  const sources: Record<string, string> = { ...(listsSources && { listKey_1: 'meta.listKey' }), ...externalId }
  return { quotes, ...((listsSources || searchesQuotes) && { sources }) }
}

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
 * @param writtenAt returns when the last write of `db` took effect, if the server says it.
 */
export function rareCommands(
  db: Db,
  within: <Reply>(command: string, send: (signal: AbortSignal) => Promise<Reply>) => Promise<Reply>,
  writtenAt: () => Timestamp | undefined,
  options: CommandOptions,
): Pick<StoreCommands, 'sumQuotes' | 'scanSources' | 'createIndexes'> {
  const sources = db.collection<SourceDocument>('sources', PRIMARY)
  return {
    sumQuotes(sourceIds) {
      const sum = { _id: '$sourceId', wordCount: { $sum: '$wordCount' }, quoteCount: { $sum: 1 } }
      const pipeline = [{ $match: { sourceId: { $in: sourceIds } } }, { $group: sum }]
      // A quote that is rolled back must not be in totals that stay. And a new primary may learn late that a majority has
      // what the last one confirmed: the sum must contain all that was written before its epoch.
      const afterClusterTime = writtenAt()
      const readConcern = { level: 'majority', ...(afterClusterTime && { afterClusterTime }) }
      // One more than the sums, so that the first reply is the last.
      const command = { aggregate: 'quotes', pipeline, cursor: { batchSize: sourceIds.length + 1 }, readConcern }
      return within('aggregate', async (signal) => {
        const { cursor } = await db.command(command, { ...PRIMARY, signal })
        if (Number(cursor.id) !== 0) throw new Error('MongoDB did not send all sums in its first reply')
        return cursor.firstBatch
      })
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
      for (const [collection, fields] of Object.entries(indexesOf(options))) {
        const indexes = Object.entries(fields).map(([name, field]) => ({ name, key: { [field]: 1 } }))
        const command = { createIndexes: collection, indexes }
        const building = within('createIndexes', (signal) => db.command(command, { ...PRIMARY, signal }))
        await building.catch((error) => {
          // MongoDB goes on with a build whose client has left, so a build that takes longer is no failure.
          const away = asStoreAway(error)
          if (!(away instanceof StoreAwayError && away.timedOut)) throw error
        })
      }
    },
  }
}
