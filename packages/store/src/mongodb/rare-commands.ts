// The store's commands that threads rarely need: large finds, sums of quotes, a walk through sources, indexes.
import { type Db, type Document, MongoServerError, type Timestamp } from 'mongodb'
import { chunksOf, sendAll } from '../chunks.ts'
import type { SourceDocument } from '../documents.ts'
import { quotesOf } from '../ids.ts'
import type { CommandOptions, QuoteTotals, SourceTotals, StoreCommands } from './commands.ts'
import { IDS_PER_QUERY, PRIMARY } from './commands.ts'
import { createSteps, isTimeOut } from './store-errors.ts'

/**
 * A page of sources has about 10 MB. It is not smaller, because the emulator walks through the collection
 * for each page.
 */
const PAGE = { projection: { wordCount: 1, quoteCount: 1, meta: 1 }, sort: { _id: 1 }, limit: 25_000 } as const

/** The least sources of a page: see `createSteps`. */
const LEAST_PAGE = 25

const QUERIES_AT_ONCE = 8

/**
 * If a smaller collection is walked, that proves nothing: a planner that weighs costs may use the index once it is
 * larger.
 */
const SMALL = 1_000

type Ask = (command: Document) => Promise<Document>

/**
 * Returns the indexes that workers create, by collection: their names, each with its one field. Quotes need an index
 * only if the server walks the collection for a range of `_id`, or does not explain its plan. Throws if MongoDB is
 * away.
 */
export async function indexesFor(
  ask: Ask,
  { listsSources }: Pick<CommandOptions, 'listsSources'>,
): Promise<Record<string, Record<string, string>>> {
  const quotes = (await walksRanges(ask)) && { quotes: { sourceId_1: 'sourceId' } }
  return { ...quotes, ...(listsSources && { sources: { listKey_1: 'meta.listKey' } }) }
}

async function walksRanges(ask: Ask): Promise<boolean> {
  // A range of one source, stored or not: for a range of all ids, walking would be right.
  const find = { find: 'quotes', filter: { _id: quotesOf('some')._id } }
  try {
    const { queryPlanner } = await ask({ explain: find, verbosity: 'queryPlanner' })
    if (!JSON.stringify(queryPlanner).includes('COLLSCAN')) return false
    const { n } = await ask({ count: 'quotes' })
    return n === 0 || n >= SMALL
  } catch (error) {
    if (!(error instanceof MongoServerError)) throw error
    return true
  }
}

/** Finds documents in queries of at most `idsPerQuery` ids, `QUERIES_AT_ONCE` at a time. */
export async function findInQueries<Found>(
  ids: readonly string[],
  query: (some: readonly string[]) => Promise<Found[]>,
  idsPerQuery = IDS_PER_QUERY,
): Promise<Found[]> {
  const found: Found[] = []
  await sendAll(chunksOf(ids, idsPerQuery), QUERIES_AT_ONCE, async (some) => {
    for (const document of await query(some)) found.push(document)
  })
  return found
}

/** Makes the commands that threads rarely need. `within`, `writtenAt`: see mongo-commands.ts. */
export function rareCommands(
  db: Db,
  within: <Reply>(command: string, send: (signal: AbortSignal) => Promise<Reply>) => Promise<Reply>,
  writtenAt: () => Timestamp | undefined,
  options: CommandOptions,
): Pick<StoreCommands, 'sumQuotes' | 'scanSources' | 'prepare'> {
  const sources = db.collection<SourceDocument>('sources', PRIMARY)
  let hasSourceIndex = false
  return {
    sumQuotes(sourceIds, areNeighbours) {
      const sum = { _id: '$sourceId', wordCount: { $sum: '$wordCount' }, quoteCount: { $sum: 1 } }
      // With majority: totals must not include a quote that is rolled back. After `writtenAt`: a new primary may learn
      // late of quotes that the former one confirmed before the sum's epoch.
      const afterClusterTime = writtenAt()
      const readConcern = { level: 'majority', ...(afterClusterTime && { afterClusterTime }) }
      const query = (some: readonly string[]) => {
        const pipeline = [{ $match: quotesOf(...some) }, { $group: sum }]
        // One more than the sums, so that the first reply is the last.
        const command = { aggregate: 'quotes', pipeline, cursor: { batchSize: some.length + 1 }, readConcern }
        return within('aggregate', async (signal): Promise<(QuoteTotals & { _id: string })[]> => {
          const { cursor } = await db.command(command, { ...PRIMARY, signal })
          if (Number(cursor.id) !== 0) throw new Error('MongoDB did not send all sums in its first reply')
          return cursor.firstBatch
        })
      }
      // Without an index of `sourceId`, distant sources are summed one by one: one range of `_id` would contain the
      // quotes of other sources, and DocumentDB walks the collection for 40 ranges in one query.
      return findInQueries(sourceIds, query, areNeighbours || hasSourceIndex ? IDS_PER_QUERY : 1)
    },
    // In pages, because a cursor that is read slowly has no time limit.
    async *scanSources() {
      const inSteps = createSteps(PAGE.limit, LEAST_PAGE)
      for (let after = ''; ; ) {
        const filter = { _id: { $gt: after } }
        const { page, limit } = await inSteps((limit) =>
          within('find', async (signal) => {
            return { page: await sources.find<SourceTotals>(filter, { ...PAGE, limit, signal }).toArray(), limit }
          }),
        )
        yield page
        if (page.length < limit) return
        after = page.at(-1)?._id ?? after
      }
    },
    async prepare() {
      const ask: Ask = (command) =>
        within(Object.keys(command)[0] ?? '', (signal) => db.command(command, { ...PRIMARY, signal }))
      const wanted = await indexesFor(ask, options)
      hasSourceIndex = 'quotes' in wanted
      for (const [collection, fields] of Object.entries(wanted)) {
        const indexes = Object.entries(fields).map(([name, field]) => ({ name, key: { [field]: 1 } }))
        await ask({ createIndexes: collection, indexes }).catch((error) => {
          // MongoDB goes on with a build whose client has left, so a build that takes longer is no failure.
          if (!isTimeOut(error)) throw error
        })
      }
    },
  }
}
