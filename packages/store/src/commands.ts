import type { Db, Document, Filter, ObjectId } from 'mongodb'
import type { QuoteDocument, SourceDocument, WriterDocument } from './documents.ts'

// The commands that the store sends. One implementation sends them to MongoDB; tests run the store on another one in memory and hold both to one conformance suite.

/** The documents of each collection. */
export interface Documents {
  sources: SourceDocument
  quotes: QuoteDocument
  writers: WriterDocument
}

export type CollectionName = keyof Documents

/** What a guarded write needs to know of a document. */
export interface VersionedDocument extends Document {
  _id: string
  meta: { version: ObjectId; epoch?: ObjectId }
}

/** MongoDB's update statement, for one document. */
export interface UpdateStatement {
  q: Document
  u: Document
  upsert?: boolean
}

/** The result of one write command, which does all that it can (`ordered: false`). */
export interface Written {
  /** Documents that were inserted, or that a statement matched. */
  n: number
  /** The positions of inserts that found a document of the same `_id`. */
  duplicates: number[]
}

/** What a source keeps of its quotes. */
export interface QuoteTotals {
  wordCount: number
  quoteCount: number
}

/** The part of a source that can disagree with its quotes. */
export type SourceTotals = Pick<SourceDocument, '_id' | 'wordCount' | 'quoteCount' | 'meta'>

export interface StoreCommands {
  /** Reads documents by their ids, at most 200, in any order. */
  find<Name extends CollectionName>(name: Name, ids: readonly string[]): Promise<Documents[Name][]>
  /** Reads only the versions and epochs of these documents, at most 200. */
  findVersions(name: 'sources' | 'quotes', ids: readonly string[]): Promise<Pick<VersionedDocument, '_id' | 'meta'>[]>
  /** Sums the stored quotes of each of these sources. A source without quotes is left out. */
  sumQuotes(sourceIds: readonly string[]): Promise<(QuoteTotals & { _id: string })[]>
  /** Reads all sources, a part of them at a time. */
  scanSources(): AsyncIterable<SourceTotals>
  /** @throws {WriteFailedError} where the server refuses a document for another reason than a duplicate. */
  insert(name: CollectionName, documents: readonly Document[]): Promise<Written>
  /** @throws {WriteFailedError} where the server refuses a statement. */
  update(name: CollectionName, statements: readonly UpdateStatement[]): Promise<Written>
  createIndexes(): Promise<void>
}

/** MongoDB refused a write. */
export class WriteFailedError extends Error {
  /** MongoDB's error code. */
  readonly code: number

  constructor(message: string, code: number) {
    super(message)
    this.name = 'WriteFailedError'
    this.code = code
  }
}

interface Named {
  _id: string
}

const DUPLICATE_KEY = 11_000
const TOTALS = { wordCount: 1, quoteCount: 1, meta: 1 }
/** A sum is written under a guard, so it must not come from a secondary that lags, whatever the URL prefers. */
const PRIMARY = { readPreference: 'primary' } as const

/**
 * The store's commands on a MongoDB database. Writes are commands of their own with majority write concern: the driver's `bulkWrite` does not tell an error of the network
 * from a refused write, and takes longer. Each method throws the driver's error where the outcome is not known.
 */
export function mongoCommands(db: Db): StoreCommands {
  const quotes = db.collection<QuoteDocument>('quotes', PRIMARY)
  const write = async (command: Document) =>
    readReply(await db.command({ ...command, ordered: false, writeConcern: { w: 'majority' } }))
  return {
    find: (name, ids) => {
      // One more than asked for: then the first reply is the last.
      const options = { batchSize: ids.length + 1 }
      const filter: Filter<Named> = { _id: { $in: ids } }
      return db.collection<Named>(name, PRIMARY).find<Documents[typeof name]>(filter, options).toArray()
    },
    async findVersions(name, ids) {
      // Versions of 200 documents always fit into one reply, so no cursor is needed.
      const projection = { 'meta.version': 1, 'meta.epoch': 1 }
      const reply = await db.command(
        { find: name, filter: { _id: { $in: ids } }, projection, batchSize: ids.length + 1, singleBatch: true },
        PRIMARY,
      )
      return reply.cursor.firstBatch
    },
    sumQuotes: (sourceIds) =>
      quotes
        .aggregate<QuoteTotals & { _id: string }>([
          { $match: { sourceId: { $in: sourceIds } } },
          { $group: { _id: '$sourceId', wordCount: { $sum: '$wordCount' }, quoteCount: { $sum: 1 } } },
        ])
        .toArray(),
    scanSources: () => db.collection('sources', PRIMARY).find<SourceTotals>({}, { projection: TOTALS }),
    insert: (name, documents) => write({ insert: name, documents }),
    update: (name, statements) => write({ update: name, updates: statements }),
    createIndexes: async () => void (await quotes.createIndex({ sourceId: 1 })),
  }
}

interface WriteError {
  index: number
  code: number
  errmsg: string
}

function readReply(reply: Document): Written {
  const errors: WriteError[] = reply.writeErrors ?? []
  const other = errors.find(({ code }) => code !== DUPLICATE_KEY)
  if (other !== undefined) throw new WriteFailedError(other.errmsg, other.code)
  // The write may be rolled back.
  if (reply.writeConcernError !== undefined)
    throw new WriteFailedError(reply.writeConcernError.errmsg, reply.writeConcernError.code)
  return { n: reply.n, duplicates: errors.map(({ index }) => index) }
}
