import {
  MongoError,
  MongoNetworkError,
  MongoNetworkTimeoutError,
  MongoServerError,
  MongoServerSelectionError,
} from 'mongodb'

// Defines the failures of the store that callers distinguish.

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

/** MongoDB can't be reached, or has no primary. The request is not at fault and should be tried again later. */
export class StoreUnreachableError extends Error {
  /** MongoDB did not answer in time: it may be away, or this command alone may have taken too long. */
  readonly timedOut: boolean

  constructor(cause: unknown) {
    super('MongoDB can not be reached', { cause })
    this.name = 'StoreUnreachableError'
    this.timedOut = cause instanceof MongoNetworkTimeoutError
  }
}

/**
 * Errors of a server that is stopping, starting or not the primary (MongoDB's error categories NotPrimaryError and ShutdownError), and of a router that reaches no primary.
 */
const AWAY_CODES = new Set([6, 7, 89, 91, 133, 189, 262, 9001, 10_058, 10_107, 11_600, 11_602, 13_435, 13_436])
const AWAY_NAMES = new Set([
  'MongoNotConnectedError',
  'MongoTopologyClosedError',
  'MongoPoolClearedError',
  'PoolClearedOnNetworkError',
])

/** Returns a `StoreUnreachableError` if the error means that MongoDB is away, else the error itself. */
export function asUnreachable(error: unknown): unknown {
  return isAway(error) ? new StoreUnreachableError(error) : error
}

function isAway(error: unknown): boolean {
  if (error instanceof WriteFailedError) return AWAY_CODES.has(error.code)
  if (!(error instanceof MongoError)) return false
  if (error instanceof MongoNetworkError || error instanceof MongoServerSelectionError) return true
  if (AWAY_NAMES.has(error.name) || error.hasErrorLabel('RetryableWriteError')) return true
  return error instanceof MongoServerError && AWAY_CODES.has(Number(error.code))
}
