// Distinguishes failures of the whole store from those of one request.
import {
  type Document,
  MongoError,
  MongoNetworkError,
  MongoNetworkTimeoutError,
  MongoServerError,
  MongoServerSelectionError,
} from 'mongodb'
import type { StoreRequest } from '../documents.ts'
import { sourceIdIn, sourceIdOf } from '../ids.ts'

/** MongoDB can't be reached or can't commit. The request is not at fault: try it again later. */
export class StoreAwayError extends Error {
  /** The command took too long: MongoDB may be away, or this command alone may be too much. */
  readonly timedOut: boolean

  constructor(cause: unknown, timedOut: boolean) {
    super(`MongoDB is away: ${cause instanceof Error ? cause.message : cause}`, { cause })
    this.name = 'StoreAwayError'
    this.timedOut = timedOut
  }
}

/** Codes of errors that concern the whole store, from MongoDB's `error_codes.yml`; 8000 is Atlas's. */
const AWAY_CODES = new Set([
  // The server can't be reached by a router, is not the primary, starts or stops.
  ...[6, 7, 89, 91, 94, 133, 189, 355, 384, 9001, 10_058, 10_107, 11_600, 11_602, 13_435, 13_436],
  // A router did not keep up with the shards: StaleEpoch, StaleDbVersion, StaleConfig.
  ...[150, 249, 13_388],
  // No majority confirms writes, or none has confirmed any yet.
  ...[64, 75, 79, 100, 134],
  // This user may not write: Unauthorized, AuthenticationFailed, ReauthenticationRequired.
  ...[13, 18, 391],
  // Nobody may write: UserWritesBlocked (read-only), AtlasError (over quota).
  ...[371, 8_000],
  // The disk is full or broken: OutOfDiskSpace, FileNotOpen, FileStreamFailed, LogWriteFailed, TooManyFilesOpen.
  ...[14_031, 38, 39, 42, 264],
  // The server is overloaded (SystemOverloadedError, ResourceExhausted, no connection from a pool).
  ...[402, 407, 433, 449, 450, 462],
])

/** The server is slow, or the command is too large: lock and time limits, TemporarilyUnavailable. */
const TIMED_OUT_CODES = new Set([24, 50, 202, 262, 365])

const AWAY_NAMES = new Set(['MongoNotConnectedError', 'MongoServerClosedError', 'MongoTopologyClosedError'])

const AWAY_LABELS = ['RetryableWriteError', 'SystemOverloadedError']

const DUPLICATE_KEY = 11_000

interface WriteError {
  index: number
  code: number
  errmsg: string
  errInfo?: Document
}

/** Names of codes with which MongoDB refuses a document: write errors have the code only. */
const CODE_NAMES: Readonly<Record<number, string>> = {
  2: 'BadValue',
  14: 'TypeMismatch',
  66: 'ImmutableField',
  121: 'DocumentValidationFailure',
  10334: 'BSONObjectTooLarge',
  17280: 'KeyTooLong',
  17419: 'BSONObjectTooLarge',
}

/** The most characters of a write error's `errInfo`, which can quote a whole document. */
const MAX_ERR_INFO = 1_024
/** Of one text there. Uncut JSON has one reason group, however long the texts are. */
const MAX_ERR_TEXT = 100
/** For `JSON.stringify`. The message has the `_id` already. */
const cutText = (name: string, value: unknown) =>
  name === 'failingDocumentId' ? undefined : typeof value === 'string' ? value.slice(0, MAX_ERR_TEXT) : value

/** MongoDB refused writes. The message names code, collection, document, and the rule if MongoDB says it, of one. */
export class RefusedWriteError extends MongoServerError {
  /** The sources of all documents that the command could not write. */
  readonly sources: ReadonlySet<string>

  /** @param ids the `_id` of the write that the message names, then those of all refused ones. */
  constructor({ code, errmsg, errInfo }: Omit<WriteError, 'index'>, collection: string, [id = '', ...all]: string[]) {
    const name = CODE_NAMES[code]
    const about = `code ${code}${name === undefined ? '' : ` ${name}`}, collection ${collection}, _id ${JSON.stringify(id)}`
    const info = errInfo === undefined ? '' : `, errInfo ${JSON.stringify(errInfo, cutText).slice(0, MAX_ERR_INFO)}`
    super({ code, errmsg: `${errmsg} (${about}${info})` })
    this.sources = new Set(all.map(sourceIdIn))
  }
}

/**
 * Returns the positions of inserts that were refused as duplicates.
 *
 * @param idAt returns the `_id` of the write at a position.
 * @throws {MongoServerError} if a write was refused otherwise.
 */
export function duplicatesIn(
  errors: readonly WriteError[],
  collection: string,
  idAt: (at: number) => string,
): number[] {
  const others = errors.filter(({ code }) => code !== DUPLICATE_KEY)
  const worst = others.find(({ code }) => AWAY_CODES.has(code)) ?? others[0]
  if (worst !== undefined) {
    const ids = [worst, ...others].map(({ index }) => idAt(index))
    throw new RefusedWriteError(worst, collection, ids)
  }
  return errors.map(({ index }) => index)
}

/** Returns whether MongoDB refused a document of this request's thread, as far as the error says. */
export function isRefused(error: unknown, { tenant, thread }: StoreRequest): boolean {
  return error instanceof RefusedWriteError && error.sources.has(sourceIdOf(tenant, thread.source))
}

/** Returns a `StoreAwayError` if the error concerns the whole store or may do so, else the error itself. */
export function asStoreAway(error: unknown): unknown {
  const isTimeOut = error instanceof MongoNetworkTimeoutError || TIMED_OUT_CODES.has(codeOf(error))
  return isTimeOut || isAway(error) ? new StoreAwayError(error, isTimeOut) : error
}

function isAway(error: unknown): boolean {
  if (AWAY_CODES.has(codeOf(error))) return true
  // While a command waits for a full socket, the driver (7.9) throws the socket's own error.
  if (error instanceof Error && 'syscall' in error) return true
  if (!(error instanceof MongoError)) return false
  if (error instanceof MongoNetworkError || error instanceof MongoServerSelectionError) return true
  return AWAY_NAMES.has(error.name) || AWAY_LABELS.some((label) => error.hasErrorLabel(label))
}

/** The driver throws a write concern error as a `MongoServerError`, even though the write may have taken effect. */
function codeOf(error: unknown): number {
  return error instanceof MongoServerError ? Number(error.code) : Number.NaN
}

/** Returns what distinguishes an error for a metric: the code of the server, or the name of the driver's error. */
export function errorCodeOf(error: unknown): string {
  const code = codeOf(error)
  if (!Number.isNaN(code)) return String(code)
  if (error instanceof MongoNetworkTimeoutError) return 'timeout'
  return error instanceof MongoError ? error.name : 'connection'
}
