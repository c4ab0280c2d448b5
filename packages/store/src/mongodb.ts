// Sends the store's commands to MongoDB.
import { setTimeout as delay } from 'node:timers/promises'
import { type Db, type Document, type Filter, ObjectId } from 'mongodb'
import type {
  CollectionName,
  Documents,
  PlacedQuote,
  QuoteTotals,
  Runtime,
  SourceTotals,
  StoreCommands,
  WriteReply,
} from './commands.ts'
import type { QuoteDocument, QuoteWithoutText } from './documents.ts'
import { CommandTimedOutError, isStoreWide, WriteFailedError } from './errors.ts'

/** The clocks, random numbers and ids of this process. */
export const processRuntime: Runtime = {
  now: Date.now,
  monotonic: () => performance.now(),
  delay: (ms) => delay(ms, undefined, { ref: false }),
  random: Math.random,
  newId: () => new ObjectId(),
}

interface Named {
  _id: string
}

const DUPLICATE_KEY = 11_000
const TOTALS = { wordCount: 1, quoteCount: 1, meta: 1 }
const PLACE = { position: 1, createdAt: 1, 'meta.version': 1, 'meta.stamp': 1, 'meta.stamps': 1 }
/** A sum is written under a guard, so it must not come from a secondary that lags, whatever the URL prefers. */
const PRIMARY = { readPreference: 'primary' } as const

/** A command ends within this time, in ms, whatever happens to its connection. */
const COMMAND_MS = 10_000
const DOCUMENTS_PER_PAGE = 1_000

/**
 * The store's commands on a MongoDB database. Writes are commands of their own with majority write concern: the driver's `bulkWrite` does not distinguish a network
 * error from a refused write, and takes longer. Each method throws the driver's error if the outcome is not known, or a `CommandTimedOutError`.
 *
 * @param limitMs the time limit of each command.
 */
export function mongoCommands(db: Db, limitMs = COMMAND_MS): StoreCommands {
  const quotes = db.collection<QuoteDocument>('quotes', PRIMARY)
  const sources = db.collection<Named>('sources', PRIMARY)
  const send = (command: Document) => withinTime(limitMs, (signal) => db.command(command, { ...PRIMARY, signal }))
  const write = async (command: Document) =>
    readReply(await send({ ...command, ordered: false, writeConcern: { w: 'majority' } }))
  const find = <Found extends Named>(name: CollectionName, ids: readonly string[], projection?: Document) => {
    // One more than the ids, so that the first reply is the last.
    const options = { batchSize: ids.length + 1, ...(projection && { projection }) }
    const filter: Filter<Named> = { _id: { $in: ids } }
    return withinTime(limitMs, (signal) =>
      db
        .collection<Named>(name, PRIMARY)
        .find<Found>(filter, { ...options, signal })
        .toArray(),
    )
  }
  return {
    find: (name, ids) => find<Documents[typeof name]>(name, ids),
    findWithoutTexts: (ids) => find<QuoteWithoutText>('quotes', ids, { text: 0 }),
    async findVersions(name, ids) {
      // Versions of 200 documents always fit into one reply, so no cursor is needed.
      const projection = { 'meta.version': 1, 'meta.epoch': 1 }
      const filter = { _id: { $in: ids } }
      const reply = await send({ find: name, filter, projection, batchSize: ids.length + 1, singleBatch: true })
      return reply.cursor.firstBatch
    },
    sumQuotes: (sourceIds) =>
      withinTime(limitMs, (signal) =>
        quotes
          .aggregate<QuoteTotals & { _id: string }>(
            [
              { $match: { sourceId: { $in: sourceIds } } },
              { $group: { _id: '$sourceId', wordCount: { $sum: '$wordCount' }, quoteCount: { $sum: 1 } } },
            ],
            { signal },
          )
          .toArray(),
      ),
    countWithoutPosition: (sourceIds) =>
      withinTime(limitMs, (signal) =>
        quotes
          .aggregate<{ _id: string; quoteCount: number }>(
            [
              { $match: { sourceId: { $in: sourceIds }, position: { $exists: false } } },
              { $group: { _id: '$sourceId', quoteCount: { $sum: 1 } } },
            ],
            { signal },
          )
          .toArray(),
      ),
    scanSources: () =>
      scan(limitMs, (after, options) =>
        sources.find<SourceTotals>({ _id: { $gt: after } }, { ...options, projection: TOTALS }).toArray(),
      ),
    scanQuotes: (sourceId) =>
      scan(limitMs, (after, options) =>
        quotes.find<PlacedQuote>({ sourceId, _id: { $gt: after } }, { ...options, projection: PLACE }).toArray(),
      ),
    insert: (name, documents) => write({ insert: name, documents }),
    update: (name, statements) => write({ update: name, updates: statements }),
    createIndexes: async () =>
      void (await send({ createIndexes: 'quotes', indexes: [{ key: { sourceId: 1 }, name: 'sourceId_1' }] })),
  }
}

const PAGE = { sort: { _id: 1 }, limit: DOCUMENTS_PER_PAGE } as const

/** Reads documents in the order of their ids, in pages, because a cursor that is read slowly has no time limit. */
async function* scan<Found extends Named>(
  limitMs: number,
  findAfter: (id: string, options: typeof PAGE & { signal: AbortSignal }) => Promise<Found[]>,
): AsyncGenerator<Found> {
  for (let after = ''; ; ) {
    const page = await withinTime(limitMs, (signal) => findAfter(after, { ...PAGE, signal }))
    yield* page
    if (page.length < DOCUMENTS_PER_PAGE) return
    after = page.at(-1)?._id ?? after
  }
}

/**
 * Gives the command a signal, which ends each of its waits: the driver (7.9) waits for ever for `drain` on a socket that was destroyed, and
 * `socketTimeoutMS` does not end that.
 */
async function withinTime<Reply>(ms: number, send: (signal: AbortSignal) => Promise<Reply>): Promise<Reply> {
  const signal = AbortSignal.timeout(ms)
  try {
    return await send(signal)
  } catch (error) {
    throw signal.aborted ? new CommandTimedOutError(ms, error) : error
  }
}

interface WriteError {
  index: number
  code: number
  errmsg: string
}

/** The driver itself throws a write concern error: the write may be rolled back. */
function readReply(reply: Document): WriteReply {
  const errors: WriteError[] = reply.writeErrors ?? []
  const others = errors.filter(({ code }) => code !== DUPLICATE_KEY)
  const worst = others.find(({ code }) => isStoreWide(code)) ?? others[0]
  if (worst !== undefined) throw new WriteFailedError(worst.errmsg, worst.code)
  return { n: reply.n, duplicates: errors.map(({ index }) => index) }
}

/** A query names at most so many ids. */
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
