// Sends the store's commands to MongoDB.
import { setTimeout as delay } from 'node:timers/promises'
import { type Db, type Document, type FindOptions, ObjectId } from 'mongodb'
import type { QuoteDocument, QuoteWithoutText, SourceDocument } from '../documents.ts'
import {
  type CollectionName,
  type Documents,
  IDS_PER_QUERY,
  type QuoteTotals,
  type ReadConcern,
  type Runtime,
  type SourceTotals,
  type StoreCommands,
  type Version,
  type WriteReply,
} from './commands.ts'
import { duplicatesIn, StoreAwayError } from './store-errors.ts'

/** The clocks, random numbers and ids of this process. */
export const processRuntime: Runtime = {
  now: Date.now,
  monotonic: () => performance.now(),
  delay: (ms) => delay(ms, undefined, { ref: false }),
  random: Math.random,
  newId: () => new ObjectId(),
}

/** A command ends within this time, even if its connection hangs. */
const COMMAND_MS = 10_000
/** Serialising blocks the event loop, and a server may lock a collection for a command. */
const WRITES_PER_COMMAND = 250
const QUERIES_AT_ONCE = 8
/** Guards need the versions of the primary, even if the URL prefers secondaries. */
const PRIMARY = { readPreference: 'primary' } as const
/** Some 10 MB. Each page costs the development stand-in for MongoDB a walk through the collection. */
const PAGE = { projection: { wordCount: 1, quoteCount: 1, meta: 1 }, sort: { _id: 1 }, limit: 25_000 } as const

/**
 * The store's commands on a MongoDB database, with majority write concern. The driver's `bulkWrite` is slower, and
 * does not distinguish a network error from a refused write. Each method throws the driver's error or a
 * `StoreAwayError` if the outcome is unknown.
 *
 * @param limitMs the time limit of each command.
 * @param listsSources creates the index of lists, too.
 */
export function mongoCommands(db: Db, { limitMs = COMMAND_MS, listsSources = false } = {}): StoreCommands {
  const sources = db.collection<SourceDocument>('sources', PRIMARY)
  const quotes = db.collection<QuoteDocument>('quotes', PRIMARY)

  const send = (command: Document) => withinTime(limitMs, (signal) => db.command(command, { ...PRIMARY, signal }))
  async function write(command: Document): Promise<WriteReply> {
    // The driver itself throws a write concern error: the write may be rolled back.
    const { n, writeErrors } = await send({ ...command, ordered: false, writeConcern: { w: 'majority' } })
    return { n, duplicates: writeErrors === undefined ? [] : duplicatesIn(writeErrors) }
  }
  /** Reads in queries of at most `IDS_PER_QUERY` ids, some of which run at the same time. */
  async function find<Found extends { _id: string }>(
    name: CollectionName,
    ids: readonly string[],
    options: FindOptions,
    condition?: Document,
  ): Promise<Found[]> {
    const collection = db.collection<{ _id: string }>(name, PRIMARY)
    const found: Found[] = []
    let next = 0
    async function query(): Promise<void> {
      while (next < ids.length) {
        const filter = { _id: { $in: ids.slice(next, next + IDS_PER_QUERY) }, ...condition }
        next += IDS_PER_QUERY
        // One more than the ids, so that the first reply is the last.
        const how = { batchSize: IDS_PER_QUERY + 1, ...options }
        const some = await withinTime(limitMs, (signal) => collection.find<Found>(filter, { ...how, signal }).toArray())
        for (const document of some) found.push(document)
      }
    }
    await Promise.all(Array.from({ length: Math.min(QUERIES_AT_ONCE, Math.ceil(ids.length / IDS_PER_QUERY)) }, query))
    return found
  }
  return {
    writesPerCommand: WRITES_PER_COMMAND,
    find: (name, ids, concern) => find<Documents[typeof name]>(name, ids, readingWith(concern)),
    findWithoutTexts: (ids, concern) =>
      find<QuoteWithoutText>('quotes', ids, { projection: { text: 0 }, ...readingWith(concern) }),
    findVersions: (name, ids, withEpoch) =>
      find<Version>(
        name,
        ids,
        { projection: { 'meta.version': 1, 'meta.epoch': 1 }, ...readingWith() },
        withEpoch && { 'meta.epoch': { $exists: true } },
      ),
    sumQuotes: (sourceIds) =>
      withinTime(limitMs, (signal) =>
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
        const page = await withinTime(limitMs, (signal) =>
          sources.find<SourceTotals>(filter, { ...PAGE, signal }).toArray(),
        )
        yield page
        if (page.length < PAGE.limit) return
        after = page.at(-1)?._id ?? after
      }
    },
    insert: (name, documents) => write({ insert: name, documents }),
    update: (name, statements) => write({ update: name, updates: statements }),
    async createIndexes() {
      await send({ createIndexes: 'quotes', indexes: [{ key: { sourceId: 1 }, name: 'sourceId_1' }] })
      const indexes = [{ key: { 'meta.listKey': 1 }, name: 'listKey_1' }]
      if (listsSources) await send({ createIndexes: 'sources', indexes })
    },
  }
}

/** Names `local` too: the URL may name another level, and then the check of epochs could miss one. */
function readingWith(level: ReadConcern = 'local'): FindOptions {
  return { readConcern: { level } }
}

/**
 * Sends a command with a signal, which ends each wait of the command: the driver (7.9) waits for ever for `drain` on a
 * socket that was destroyed, and `socketTimeoutMS` does not end that.
 *
 * @throws {StoreAwayError} if the command does not end in time. Whether it took effect is unknown.
 */
async function withinTime<Reply>(ms: number, send: (signal: AbortSignal) => Promise<Reply>): Promise<Reply> {
  const signal = AbortSignal.timeout(ms)
  try {
    return await send(signal)
  } catch (error) {
    if (!signal.aborted) throw error
    throw new StoreAwayError(new Error(`a command took longer than ${ms / 1000} s`, { cause: error }), true)
  }
}
