// The commands of MongoDB that the store uses, and their size limits. Tests also run the store on
// commands in memory.
import type { Document } from 'mongodb'
import type {
  QuoteDocument,
  QuoteWithoutText,
  SourceDocument,
  SourceOrTombstone,
  WriterDocument,
} from '../documents.ts'

export interface Documents {
  sources: SourceOrTombstone
  quotes: QuoteDocument
  writers: WriterDocument
}

export type CollectionName = keyof Documents

/** The marks of a document by which guards and checks notice a write. */
export type Version = { _id: string; meta: Pick<SourceDocument['meta'], 'version' | 'epoch'> }

export interface UpdateStatement {
  q: Document
  u: Document
  /** Inserts the document if none matches. */
  upsert?: true
  /**
   * Updates all documents that match, not only one. `q._id` is then a list (`$in`) or a range, not
   * one id.
   */
  multi?: true
}

/** The result of one write command. A refused write does not stop the others. */
export interface WriteReply {
  /** The number of documents that were inserted, matched or upserted. */
  n: number
  /**
   * Positions of refused writes: inserts of an `_id` that exists, writes that met a lock, or all
   * writes (see `allRefused`).
   */
  refused: number[]
}

/**
 * Returns the reply for a command that met a lock. It reports all writes as refused, because only
 * the documents' versions show which took effect.
 */
export function allRefused({ length }: readonly unknown[]): WriteReply {
  return { n: 0, refused: Array.from({ length }, (_, at) => at) }
}

export type QuoteTotals = Pick<SourceDocument, 'wordCount' | 'quoteCount'>

/** The part of a source that can disagree with its quotes. */
export type SourceTotals = QuoteTotals & Pick<SourceOrTombstone, '_id' | 'meta'>

/**
 * The most ids of a query: on the emulator SecantusDB, the cost of an id grows with their number.
 */
export const IDS_PER_QUERY = 100

/** Guards need the versions that the primary has, even if the URL prefers secondaries. */
export const PRIMARY = { readPreference: 'primary' } as const

/** Reads only what no rollback takes away. */
export const PRIMARY_MAJORITY = { ...PRIMARY, readConcern: { level: 'majority' } } as const

/**
 * `local` (the default) reads what the primary has, and may roll back. `majority` reads what a
 * majority has, which may be older.
 */
export type ReadConcern = 'local' | 'majority'

export interface StoreCommands {
  /** The most documents of an `insert`, and the most statements of an `update`. */
  readonly writesPerCommand: number
  /**
   * Reads documents by their ids, in any order. This is no snapshot: documents are read one after
   * the other.
   */
  find<Of extends CollectionName>(
    name: Of,
    ids: readonly string[],
    concern?: ReadConcern,
  ): Promise<Documents[Of][]>
  /** Reads quotes by their ids without their texts, in any order. */
  findWithoutTexts(ids: readonly string[], concern?: ReadConcern): Promise<QuoteWithoutText[]>
  /**
   * Reads a source's quotes without their texts, in the order of their ids: the first `limit` after
   * the id `after`. With `upTo`, only those that have this position or an earlier one.
   */
  findQuotesOf(
    sourceId: string,
    page: { after: string; limit: number; upTo: string | undefined },
  ): Promise<QuoteWithoutText[]>
  /**
   * Reads only the versions and epochs of these documents. With `withEpoch`, omits documents
   * without an epoch.
   */
  findVersions(
    name: 'sources' | 'quotes',
    ids: readonly string[],
    withEpoch?: 'withEpoch',
  ): Promise<Version[]>
  /**
   * Sums the stored quotes of each source. Omits sources without quotes.
   * @param how `areNeighbours`: there are few other sources between these ids, so one query may sum
   * many sources. `marked`: leaves out the quotes of which nothing is seen in these sources.
   */
  sumQuotes(
    sourceIds: readonly string[],
    how?: { areNeighbours?: boolean; marked?: readonly SourceOrTombstone[] },
  ): Promise<(QuoteTotals & { _id: string })[]>
  /** Reads all sources, in pages of at most 25,000. This is no snapshot. */
  scanSources(): AsyncIterable<SourceTotals[]>
  /**
   * Throws (as `update` does) if the server refuses a document for another reason than a duplicate
   * or a lock.
   */
  insert(name: CollectionName, documents: readonly Document[]): Promise<WriteReply>
  update(name: CollectionName, statements: readonly UpdateStatement[]): Promise<WriteReply>
  /** Removes those of a source's quotes with these ids whose stamps are at most `upTo`. */
  removeQuotes(sourceId: string, ids: readonly string[], upTo: number): Promise<WriteReply>
  /** Removes the sources that still have these versions. */
  removeSources(sources: readonly Version[]): Promise<WriteReply>
  /** Prepares the database for the first batch: creates the indexes. */
  prepare(): Promise<void>
}

export interface CommandOptions {
  /** The time limit of each command. */
  limitMs?: number
  /**
   * Observes each command. The driver's own events would cost more, because the driver then reads
   * each reply twice.
   */
  metrics?: CommandMetrics
  /** Whether workers create the index for lists of sources. */
  listsSources?: boolean
}

export interface CommandMetrics {
  times: { observe(labels: { command: string }, seconds: number): void }
  errors: { inc(labels: { code: string }): void }
}

/** A command must not exceed 16 MiB, and a character takes at most three bytes. */
export const CHARACTERS_PER_COMMAND = 3_000_000
/**
 * If the first command takes longer than this, MongoDB is slow, and the other commands are sent
 * `WRITES_AT_ONCE` at a time.
 */
const SLOW_MS = 500
const WRITES_AT_ONCE = 4
/**
 * If the first command takes less than this, the others may be FAST_TIMES times as large, because a
 * large command costs less for each write.
 */
const FAST_MS = 100
const FAST_TIMES = 4

/**
 * Sends items in as many commands as they need. The first command has at most `maxItems`. Its time
 * decides about the others: if MongoDB is fast, they are larger, and if it is slow, several are
 * sent in parallel. After a failure, sends no further command.
 */
export async function sendInChunks<Item>(
  items: readonly Item[],
  maxItems: number,
  charactersOf: (item: Item) => number,
  send: (chunk: Item[]) => Promise<void>,
): Promise<void> {
  const [first] = chunksOf(items, maxItems, charactersOf)
  if (first === undefined) return
  const began = performance.now()
  await send(first)
  const ms = performance.now() - began
  const most = ms < FAST_MS ? maxItems * FAST_TIMES : maxItems
  await sendAll(
    chunksOf(items.slice(first.length), most, charactersOf),
    ms > SLOW_MS ? WRITES_AT_ONCE : 1,
    send,
  )
}

/** Sends all chunks, `atOnce` of them in parallel. After a failure, sends no further chunk. */
export async function sendAll<Item>(
  chunks: Generator<Item[]>,
  atOnce: number,
  send: (chunk: Item[]) => Promise<void>,
) {
  async function sendNext(): Promise<void> {
    // A loop that throws ends the generator, and so ends the other loops.
    for (const chunk of chunks) await send(chunk)
  }
  await Promise.all(Array.from({ length: atOnce }, sendNext))
}

/** Cuts the items into chunks, each of which fits into one command. */
export function* chunksOf<Item>(
  items: readonly Item[],
  maxItems: number,
  charactersOf = (_: Item) => 0,
) {
  let chunk: Item[] = []
  let characters = 0
  for (const item of items) {
    const more = charactersOf(item)
    if (
      chunk.length === maxItems ||
      (chunk.length > 0 && characters + more > CHARACTERS_PER_COMMAND)
    ) {
      yield chunk
      chunk = []
      characters = 0
    }
    chunk.push(item)
    characters += more
  }
  if (chunk.length > 0) yield chunk
}
