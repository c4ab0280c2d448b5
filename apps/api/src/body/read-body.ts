// Reads a request's body: checks its headers, and reads it as a whole within bounds of size, time and memory.
import type { IncomingMessage } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import {
  bodyTooLarge,
  CallerGoneError,
  fixedProblem,
  mediaTypeUnsupported,
  type SizeLimit,
} from '../request/problem-error.ts'
import { type ArrivingDeps, type BodyContext, readArriving } from './arriving-body.ts'
import { type Coding, codingOf } from './body-chunks.ts'

/**
 * Checks a body's media type, charset and coding.
 *
 * @param accepted the accepted media types, in lower case.
 * @throws {ProblemError} 415.
 */
export function checkContentType(
  { headers }: IncomingMessage,
  accepted: readonly string[],
): { mediaType: string; coding: Coding } {
  const [mediaType = '', ...parameters] = (headers['content-type'] ?? '')
    .split(';')
    .map((part) => part.trim().toLowerCase())
  if (!accepted.includes(mediaType)) throw mediaTypeUnsupported(mediaType, accepted)
  const charset = parameters
    .find((parameter) => parameter.startsWith('charset='))
    ?.slice('charset='.length)
    .replaceAll('"', '')
  if (charset !== undefined && charset !== 'utf-8' && charset !== 'utf8') throw fixedProblem('charset_unsupported')
  const encoding = headers['content-encoding']
  return { mediaType, coding: encoding === undefined ? 'identity' : codingOf(encoding) }
}

/** Returns the length that a body announces, undefined if it announces none. @throws {ProblemError} 413. */
export function checkContentLength({ headers }: IncomingMessage, bytes: number, limit: SizeLimit): number | undefined {
  const header = headers['content-length']
  if (header === undefined) return undefined
  const length = Number(header)
  if (length > bytes) throw bodyTooLarge(bytes, limit)
  return length
}

/** The most that Node reads from a socket at once. */
const ONE_READ_BYTES = 64 * 1024

/** The dependencies of reading a whole body. */
export type BodyDeps = ArrivingDeps & { limits: { bodyBytes: number } }

/**
 * Reads a whole body, inflated. Its memory stays reserved until the response closes, as the parsed body lives as long.
 *
 * @param withinMs the time within which the body must arrive.
 * @throws {ProblemError} 503 without memory for the body, or when the grace time is over; 413 beyond `bodyBytes`, as
 *   sent or inflated; 400 if the body does not inflate or is too slow.
 * @throws {CallerGoneError}
 */
export async function readBody(
  context: BodyContext,
  coding: Coding,
  deps: BodyDeps,
  withinMs?: number,
): Promise<Buffer> {
  const { request } = context
  const { bodyBytes } = deps.limits
  const announced = checkContentLength(request, bodyBytes, 'bodyBytes') ?? Number.POSITIVE_INFINITY
  const mayBeThere = coding === 'identity' && announced <= ONE_READ_BYTES && request.headers.expect === undefined
  // Node reports a head before it parses the rest of what it has read.
  if (mayBeThere && !request.complete) await setImmediate()
  if (!mayBeThere || !request.complete || request.destroyed || context.signal.aborted)
    return readArriving(context, { coding, announced, bytes: bodyBytes }, deps, withinMs)
  deps.bodyMemory.reserve(context, announced)
  return takeWhole(request)
}

const EMPTY: Buffer = Buffer.alloc(0)

/** Returns a body that arrived with its head. Waits for its end: without it, the connection would count as unread. */
function takeWhole(request: IncomingMessage): Promise<Buffer> {
  const body: Buffer = request.read() ?? EMPTY
  return new Promise((resolve, reject) => {
    request.once('end', () => resolve(body))
    request.once('close', () => {
      // Every request closes. An error that nobody needs costs its stack trace.
      if (!request.readableEnded) reject(new CallerGoneError('the caller hung up'))
    })
  })
}
