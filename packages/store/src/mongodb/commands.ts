// The commands of MongoDB that the store uses, their size limits, and the errors with which they
// fail: of the whole store, or of one request. Tests also run the store on commands in memory.
import {
  BSON,
  type Document,
  MongoError,
  MongoNetworkError,
  MongoNetworkTimeoutError,
  MongoServerError,
} from 'mongodb'
import type {
  QuoteDocument,
  QuoteWithoutText,
  SourceDocument,
  SourceOrTombstone,
  StoreRequest,
  WriterDocument,
} from '../documents.ts'
import { sourceIdIn, sourceIdOfRequest } from '../ids.ts'

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
  /**
   * Reads all sources, in pages of at most 25,000. This is no snapshot. `foreign`: the ids of
   * documents that Sluice did not write.
   */
  scanSources(): AsyncIterable<{ own: SourceTotals[]; foreign: string[] }>
  /**
   * Throws (as `update` does) if the server refuses a document for another reason than a duplicate
   * or a lock.
   */
  insert(name: CollectionName, documents: readonly Document[]): Promise<WriteReply>
  update(name: CollectionName, statements: readonly UpdateStatement[]): Promise<WriteReply>
  /** Removes the quotes of a source with these ids whose stamps are at most `upTo`. */
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

/**
 * A whole command failed, so its outcome is unknown. MongoDB may be unavailable or unable to
 * commit, or only this command may be too much for it: a probe decides. The `cause` may say which
 * documents MongoDB refused: see `refusalOf`.
 */
export class CommandFailedError extends Error {
  /**
   * Whether MongoDB is certainly unavailable. Then no probe decides, because a probe may succeed
   * although the commands fail.
   */
  readonly isCertain: boolean

  constructor(cause: unknown, isCertain: boolean) {
    const reason = cause instanceof Error ? cause.message : cause
    super(`MongoDB is unavailable: ${reason}`, { cause })
    this.name = 'CommandFailedError'
    this.isCertain = isCertain
  }
}

/** The user of MongoDB may not send this command. */
const UNAUTHORIZED = 13
/**
 * Codes of errors that a probe does not meet, from MongoDB's `error_codes.yml`: Unauthorized (a
 * user may write one collection but not another), and errors of an overload (a single small write
 * may still succeed).
 */
const CERTAIN_CODES = new Set([UNAUTHORIZED, 402, 407, 433, 449, 450, 462])
const CERTAIN_NAMES = /^Mongo(ServerSelection|NotConnected|ServerClosed|TopologyClosed)Error$/
const CERTAIN_LABELS = ['RetryableWriteError', 'SystemOverloadedError']

const DUPLICATE_KEY = 11_000
/**
 * Another command has locked a document that this command writes. Engines that lock documents end a
 * deadlock with this error.
 */
const WRITE_CONFLICT = 112

interface WriteError {
  index: number
  code: number
  errmsg: string
  errInfo?: Document
}

/**
 * The codes with which MongoDB refuses a document, and their names, because write errors have only
 * the code.
 */
const CODE_NAMES: Readonly<Record<number, string>> = {
  2: 'BadValue',
  [UNAUTHORIZED]: 'Unauthorized',
  14: 'TypeMismatch',
  66: 'ImmutableField',
  121: 'DocumentValidationFailure',
  10334: 'BSONObjectTooLarge',
  17280: 'KeyTooLong',
  17419: 'BSONObjectTooLarge',
}

/** Bounds the characters of a write error's `errInfo`, which can quote a whole document. */
const MAX_ERR_INFO = 1_024
/**
 * Cuts longer texts in `errInfo`, so that most of them stay within MAX_ERR_INFO. If `errInfo`
 * itself is cut, equal failures are cut at different places, and form several groups of failed
 * jobs.
 */
const MAX_ERR_TEXT = 100
/**
 * A replacer for JSON. Leaves out the `_id`, which the message already has, and does not cut a
 * pattern, which is a rule.
 */
function cutText(name: string, value: unknown): unknown {
  if (name === 'failingDocumentId') return undefined
  const isLong = typeof value === 'string' && name !== 'pattern' && value.length > MAX_ERR_TEXT
  return isLong ? `${value.slice(0, MAX_ERR_TEXT)}…` : value
}

/**
 * MongoDB refused a write. The message names the code, the collection, the document and, if MongoDB
 * reports it, the rule.
 */
export class RefusedWriteError extends MongoServerError {
  /** An error for each source of which the command could not write a document. */
  sources: ReadonlyMap<string, RefusedWriteError>

  constructor(
    { code, errmsg, errInfo }: Omit<WriteError, 'index'>,
    collection: string,
    id: string,
  ) {
    const name = CODE_NAMES[code]
    const about = `code ${code}${name === undefined ? '' : ` ${name}`}, collection ${collection}, _id ${JSON.stringify(id)}`
    // Not as plain JSON, which would write a regular expression (which may be the rule) as `{}`.
    const json = errInfo === undefined ? '' : BSON.EJSON.stringify(errInfo, cutText)
    const info = json && `, errInfo ${json.slice(0, MAX_ERR_INFO)}`
    super({ code, errmsg: `${errmsg} (${about}${info})` })
    this.sources = new Map([[sourceIdIn(id), this]])
  }
}

/**
 * Returns the positions of the writes that were refused because of another process's write: as
 * duplicates, or because both locked a document. If writes were refused for other reasons, throws
 * one `RefusedWriteError` for all of them.
 */
export function refusedIn(
  errors: readonly WriteError[],
  collection: string,
  idsOf: readonly string[],
): number[] {
  const others = errors.filter(({ code }) => code !== DUPLICATE_KEY && code !== WRITE_CONFLICT)
  const refusals = others.map(
    (error) => new RefusedWriteError(error, collection, idsOf[error.index] ?? ''),
  )
  const worst = refusals.find(({ code }) => !(Number(code) in CODE_NAMES)) ?? refusals[0]
  if (worst === undefined) return errors.map(({ index }) => index)
  // If a source has several errors, the map keeps the first.
  worst.sources = new Map(refusals.toReversed().flatMap(({ sources }) => [...sources]))
  throw worst
}

/**
 * Returns the refusal of a document if the user of MongoDB may not send this command. Otherwise
 * returns the error itself. For commands of deletions only: without such a right, posts are stored
 * nevertheless, so workers must not wait for it.
 */
export function asRefused(error: unknown, collection: string, id: string): unknown {
  const cause = error instanceof CommandFailedError ? error.cause : error
  if (!isUnauthorized(cause)) return error
  return new RefusedWriteError({ code: UNAUTHORIZED, errmsg: cause.message }, collection, id)
}

/** Returns whether the user of MongoDB may not send a command that failed. */
export function isUnauthorized(error: unknown): error is MongoServerError {
  return codeOf(error) === UNAUTHORIZED
}

/**
 * Returns whether a command failed because another command had locked its documents. Some of its
 * writes may have taken effect.
 */
export function isConflict(error: unknown): boolean {
  return codeOf(error) === WRITE_CONFLICT
}

/** Returns why MongoDB refused a document of this request's thread, if the error says so. */
export function refusalOf(error: unknown, request: StoreRequest): Error | undefined {
  const refusal = error instanceof CommandFailedError ? error.cause : error
  return refusal instanceof RefusedWriteError
    ? refusal.sources.get(sourceIdOfRequest(request))
    : undefined
}

/**
 * Returns a `CommandFailedError`, except in two cases in which it returns the error itself: MongoDB
 * refused a document with one of `CODE_NAMES`, or the error does not come from MongoDB or its
 * connection.
 */
export function asCommandFailed(error: unknown): unknown {
  if (error instanceof RefusedWriteError && codeOf(error) in CODE_NAMES) return error
  // While a command waits for a full socket, the driver (7.9) throws the socket's own error.
  const isOfSocket = error instanceof Error && 'syscall' in error
  return isOfSocket || error instanceof MongoError
    ? new CommandFailedError(error, isOfSocket || isCertain(error))
    : error
}

/** Returns whether a command exceeded its own time limit or the connection's. */
export function isTimeOut(error: unknown): boolean {
  return error instanceof CommandFailedError || error instanceof MongoNetworkTimeoutError
}

/**
 * Makes a function that calls `ask` with a number of items. If that takes MongoDB too long, it asks
 * for a tenth, down to `least`. Later calls begin with the smaller number, so that even a slow
 * MongoDB answers them in time.
 */
export function createSteps(most: number, least: number) {
  let step = most
  return async <Found>(ask: (step: number) => Promise<Found>): Promise<Found> => {
    for (;;) {
      try {
        return await ask(step)
      } catch (error) {
        if (!isTimeOut(error) || step <= least) throw error
        step /= 10
      }
    }
  }
}

function isCertain(error: unknown): boolean {
  if (!(error instanceof MongoError) || error instanceof MongoNetworkTimeoutError) return false
  if (
    error instanceof MongoNetworkError ||
    CERTAIN_NAMES.test(error.name) ||
    CERTAIN_CODES.has(codeOf(error))
  )
    return true
  return CERTAIN_LABELS.some((label) => error.hasErrorLabel(label))
}

/**
 * Returns the code of an error of the server, or NaN for any other error. A write concern error
 * also has a code, although its write may take effect.
 */
function codeOf(error: unknown): number {
  return error instanceof MongoServerError ? Number(error.code) : Number.NaN
}

/**
 * Returns how a metric names an error: by the server's code, or by the name of the driver's error.
 */
export function errorCodeOf(error: unknown): string {
  const code = codeOf(error)
  if (!Number.isNaN(code)) return String(code)
  if (error instanceof MongoNetworkTimeoutError) return 'timeout'
  return error instanceof MongoError ? error.name : 'connection'
}
