// Distinguishes failures of the whole store from failures of one request.
import {
  BSON,
  type Document,
  MongoError,
  MongoNetworkError,
  MongoNetworkTimeoutError,
  MongoServerError,
} from 'mongodb'
import type { StoreRequest } from '../documents.ts'
import { sourceIdIn, sourceIdOfRequest } from '../ids.ts'

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

/**
 * Codes of errors that a probe does not meet, from MongoDB's `error_codes.yml`: Unauthorized (a
 * user may write one collection but not another), and errors of an overload (a single small write
 * may still succeed).
 */
const CERTAIN_CODES = new Set([13, 402, 407, 433, 449, 450, 462])
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
