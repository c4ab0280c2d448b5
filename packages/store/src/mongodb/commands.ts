// The commands of MongoDB that the store needs, and how much fits into one. Tests run the store on
// commands in memory, too.
import type { Document } from 'mongodb'
import type {
  QuoteDocument,
  QuoteWithoutText,
  SourceDocument,
  WriterDocument,
} from '../documents.ts'

export interface Documents {
  sources: SourceDocument
  quotes: QuoteDocument
  writers: WriterDocument
}

export type CollectionName = keyof Documents

/** The marks of a document that guards and checks compare. */
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
  /** Documents that were inserted, or that a statement matched or upserted. */
  n: number
  /**
   * Positions of refused writes: inserts of an `_id` that exists, writes that met a lock, or all:
   * see `allRefused`.
   */
  refused: number[]
}

/**
 * Returns the reply for a command that met a lock: only the documents' versions show which writes
 * took effect.
 */
export function allRefused({ length }: readonly unknown[]): WriteReply {
  return { n: 0, refused: Array.from({ length }, (_, at) => at) }
}

export type QuoteTotals = Pick<SourceDocument, 'wordCount' | 'quoteCount'>

/** The part of a source that can disagree with its quotes. */
export type SourceTotals = QuoteTotals & Pick<SourceDocument, '_id' | 'meta'>

/**
 * The most ids of a query: on the emulator SecantusDB, the cost of an id grows with their number.
 */
export const IDS_PER_QUERY = 100

/** Guards need the versions of the primary, even if the URL prefers secondaries. */
export const PRIMARY = { readPreference: 'primary' } as const

/**
 * `local` (the default): what the primary has and may roll back. `majority`: what a majority has;
 * it may be older.
 */
export type ReadConcern = 'local' | 'majority'

export interface StoreCommands {
  /** The most documents of one `insert`, and statements of one `update`. */
  readonly writesPerCommand: number
  /**
   * Reads documents by their ids, in any order. Not a snapshot: documents are read one after the
   * other.
   */
  find<Of extends CollectionName>(
    name: Of,
    ids: readonly string[],
    concern?: ReadConcern,
  ): Promise<Documents[Of][]>
  /** Reads quotes by their ids without their texts, in any order. */
  findWithoutTexts(ids: readonly string[], concern?: ReadConcern): Promise<QuoteWithoutText[]>
  /**
   * Reads only the versions and epochs of these documents. `withEpoch` omits those without an
   * epoch.
   */
  findVersions(
    name: 'sources' | 'quotes',
    ids: readonly string[],
    withEpoch?: 'withEpoch',
  ): Promise<Version[]>
  /**
   * Sums the stored quotes of each source. Omits sources without quotes. `areNeighbours`: few other
   * sources have ids between these, so one query sums many of them.
   */
  sumQuotes(
    sourceIds: readonly string[],
    areNeighbours?: 'areNeighbours',
  ): Promise<(QuoteTotals & { _id: string })[]>
  /** Reads all sources, at most 25,000 at once. Not a snapshot. */
  scanSources(): AsyncIterable<SourceTotals[]>
  /**
   * Throws, as `update` does, if the server refuses a document for another reason than a duplicate
   * or a lock.
   */
  insert(name: CollectionName, documents: readonly Document[]): Promise<WriteReply>
  update(name: CollectionName, statements: readonly UpdateStatement[]): Promise<WriteReply>
  /** Prepares the database for the first batch: creates the indexes. */
  prepare(): Promise<void>
}

export interface CommandOptions {
  /** The time limit of each command. */
  limitMs?: number
  /**
   * Observes each command. The driver's own events would cost more: for them, the driver reads each
   * reply twice.
   */
  metrics?: CommandMetrics
  /** Whether the workers create the index for lists of sources. */
  listsSources?: boolean
}

export interface CommandMetrics {
  times: { observe(labels: { command: string }, seconds: number): void }
  errors: { inc(labels: { code: string }): void }
}

/** A command must not exceed 16 MiB, and a character takes three bytes at most. */
export const CHARACTERS_PER_COMMAND = 3_000_000
/**
 * If the first command takes longer, MongoDB is slow, and the others are sent `WRITES_AT_ONCE` at a
 * time.
 */
const SLOW_MS = 500
const WRITES_AT_ONCE = 4
/**
 * If it takes less, the others may be this many times as large: a large command costs less for each
 * write.
 */
const FAST_MS = 100
const FAST_TIMES = 4

/**
 * Sends items in as many commands as they need. The first one has at most `maxItems`, and its time
 * decides about the others: they are larger if MongoDB is fast, and several are sent at once if it
 * is slow. After a failure, it sends no further command.
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

/** Sends all chunks, `atOnce` at a time. After a failure, it sends no other. */
export async function sendAll<Item>(
  chunks: Generator<Item[]>,
  atOnce: number,
  send: (chunk: Item[]) => Promise<void>,
) {
  async function sendNext(): Promise<void> {
    // A loop that throws ends the generator, and so the other loops.
    for (const chunk of chunks) await send(chunk)
  }
  await Promise.all(Array.from({ length: atOnce }, sendNext))
}

/** Returns the items in chunks for one command each. */
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
