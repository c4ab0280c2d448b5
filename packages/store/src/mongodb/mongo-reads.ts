// Reads from MongoDB what the store looks up, sums and scans.
import type { Db, Filter, FindOptions } from 'mongodb'
import type { QuoteDocument, QuoteWithoutText } from '../documents.ts'
import type { CollectionName, Documents, QuoteTotals, ReadConcern, SourceTotals, StoreCommands } from './commands.ts'

interface Named {
  _id: string
}

/** Runs a command under the time limit, which the signal ends. */
type InTime = <Reply>(send: (signal: AbortSignal) => Promise<Reply>) => Promise<Reply>

const PAGE = { projection: { wordCount: 1, quoteCount: 1, meta: 1 }, sort: { _id: 1 }, limit: 1_000 } as const
/** Guards need the versions of the primary, even if the URL prefers secondaries. */
export const PRIMARY = { readPreference: 'primary' } as const

/** The store's reads on a MongoDB database. */
export function mongoReads(db: Db, inTime: InTime): Omit<StoreCommands, 'insert' | 'update' | 'createIndexes'> {
  const quotes = db.collection<QuoteDocument>('quotes', PRIMARY)
  const sources = db.collection<Named>('sources', PRIMARY)
  const find = <Found extends Named>(name: CollectionName, ids: readonly string[], more: FindOptions) => {
    // One more than the ids, so that the first reply is the last.
    const options = { batchSize: ids.length + 1, ...more }
    const filter: Filter<Named> = { _id: { $in: ids } }
    return inTime((signal) =>
      db
        .collection<Named>(name, PRIMARY)
        .find<Found>(filter, { ...options, signal })
        .toArray(),
    )
  }
  return {
    find: (name, ids, concern) => find<Documents[typeof name]>(name, ids, readingWith(concern)),
    findWithoutTexts: (ids, concern) =>
      find<QuoteWithoutText>('quotes', ids, { projection: { text: 0 }, ...readingWith(concern) }),
    async findVersions(name, ids, withEpoch) {
      // Versions of 200 documents always fit into one reply, so no cursor is needed.
      const projection = { 'meta.version': 1, 'meta.epoch': 1 }
      const filter = { _id: { $in: ids }, ...(withEpoch && { 'meta.epoch': { $exists: true } }) }
      const command = { find: name, filter, projection, batchSize: ids.length + 1, singleBatch: true }
      const reply = await inTime((signal) => db.command(command, { ...PRIMARY, signal }))
      return reply.cursor.firstBatch
    },
    sumQuotes: (sourceIds) =>
      inTime((signal) =>
        quotes
          .aggregate<QuoteTotals & { _id: string }>(
            [
              { $match: { sourceId: { $in: sourceIds } } },
              { $group: { _id: '$sourceId', wordCount: { $sum: '$wordCount' }, quoteCount: { $sum: 1 } } },
            ],
            // A quote that is rolled back must not be in totals that stay.
            { signal, readConcern: { level: 'majority' } },
          )
          .toArray(),
      ),
    // In pages, because a cursor that is read slowly has no time limit.
    async *scanSources() {
      for (let after = ''; ; ) {
        const filter = { _id: { $gt: after } }
        const page = await inTime((signal) => sources.find<SourceTotals>(filter, { ...PAGE, signal }).toArray())
        yield* page
        if (page.length < PAGE.limit) return
        after = page.at(-1)?._id ?? after
      }
    },
  }
}

function readingWith(level: ReadConcern = 'local'): FindOptions {
  return level === 'local' ? {} : { readConcern: { level } }
}

/** The ids in one query. */
export const IDS_PER_QUERY = 200
const QUERIES_AT_ONCE = 8

/** Reads documents by their ids in queries of at most 200 ids, several at once. */
export async function findByIds<Found>(
  ids: readonly string[],
  find: (some: string[]) => Promise<Found[]>,
): Promise<Found[]> {
  const found: Found[] = []
  let next = 0
  async function query(): Promise<void> {
    while (next < ids.length) {
      const some = ids.slice(next, next + IDS_PER_QUERY)
      next += IDS_PER_QUERY
      for (const document of await find(some)) found.push(document)
    }
  }
  await Promise.all(Array.from({ length: Math.min(QUERIES_AT_ONCE, Math.ceil(ids.length / IDS_PER_QUERY)) }, query))
  return found
}
