import {
  MongoError,
  MongoNetworkError,
  MongoNetworkTimeoutError,
  MongoServerError,
  MongoServerSelectionError,
} from 'mongodb'

// What can go wrong in the store, as callers tell it apart.

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

/** MongoDB can't be reached, or has no primary: nothing is wrong with the request, and trying it again later is right. */
export class StoreUnreachableError extends Error {
  /** It was asked, and did not answer in time: it may be away, or only this was too much for it. */
  readonly timedOut: boolean

  constructor(cause: unknown) {
    super('MongoDB can not be reached', { cause })
    this.name = 'StoreUnreachableError'
    this.timedOut = cause instanceof MongoNetworkTimeoutError
  }
}

/**
 * Errors of a server that is stopping, starting or not the primary (MongoDB's error categories NotPrimaryError and ShutdownError), and of a router that does not reach one.
 */
const AWAY_CODES = new Set([6, 7, 89, 91, 133, 189, 262, 9001, 10_058, 10_107, 11_600, 11_602, 13_435, 13_436])
const AWAY_NAMES = new Set([
  'MongoNotConnectedError',
  'MongoTopologyClosedError',
  'MongoPoolClearedError',
  'PoolClearedOnNetworkError',
])

/** The error as it is, or a `StoreUnreachableError` in its place where that is what it means. */
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
