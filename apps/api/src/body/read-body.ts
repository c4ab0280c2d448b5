// Reads a request's body: as a whole, within bounds of size, time and memory, or chunk by chunk as
// it arrives, inflated. Asks for the body of a caller that waits for permission to send it, and
// drains a body that nobody reads. A body may have several gzip members or zstd frames. Any other
// bytes after them are refused.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { finished as onFinished, type Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import * as zlib from 'node:zlib'
import { type Inflater, inflateMembers, UndecodableError } from '@sluice/process/inflate-members'
import {
  bodyTooLarge,
  bodyUnreadable,
  CallerGoneError,
  ProblemError,
  type SizeLimit,
} from '../request/problem-error.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Budget } from '../request/shares.ts'

type BodyContext = Pick<
  RequestContext,
  'request' | 'response' | 'tenant' | 'signal' | 'chargedBytes'
>

/**
 * Returns the length that a body announces, or infinity if it announces none.
 * @throws {ProblemError} 413.
 */
export function checkContentLength(
  { headers }: IncomingMessage,
  bytes: number,
  limit: SizeLimit,
): number {
  const length = Number(headers['content-length'] ?? Number.POSITIVE_INFINITY)
  if (Number.isFinite(length) && length > bytes) throw bodyTooLarge(bytes, limit)
  return length
}

export interface BodyDeps {
  bodyBudget: Pick<Budget, 'reserve'>
  settings: { bodyBytes: number }
}

/** The most bytes that Node reads from a socket in one read. */
const ONE_READ_BYTES = 64 * 1024

/**
 * Reads a whole body, inflated. Its memory stays reserved until the response closes, because the
 * parsed body may live as long.
 *
 * @param coding by default, read from the headers, which must announce JSON.
 * @throws {ProblemError} 415, 503 (no memory, or the grace time is over), 413, 400 (does not
 * inflate) or 408 (too slow).
 */
export async function readBody(
  context: BodyContext,
  { bodyBudget, settings: { bodyBytes } }: BodyDeps,
  coding = codingOfJson(context.request),
  withinMs?: number,
): Promise<Buffer> {
  const { request } = context
  const announced = checkContentLength(request, bodyBytes, 'bodyBytes')
  const mayBeThere =
    coding === 'identity' && announced <= ONE_READ_BYTES && request.headers.expect === undefined
  // Node emits the request before it parses the rest of the same read, so a small body may be
  // complete in the next turn.
  if (mayBeThere && !request.complete) await nextTurn()
  if (!mayBeThere || !request.complete || request.destroyed || context.signal.aborted)
    return readArriving(context, { coding, announced, bytes: bodyBytes }, bodyBudget, withinMs)
  bodyBudget.reserve(context, announced)
  return takeWhole(request)
}

const JSON_TYPE = 'application/json'

/** Returns the coding of a body that must be JSON. @throws {ProblemError} 415. */
export function codingOfJson(request: IncomingMessage): Coding {
  const { 'content-type': type, 'content-encoding': coding } = request.headers
  return type === JSON_TYPE && coding === undefined
    ? 'identity'
    : checkContentType(request, [JSON_TYPE]).coding
}

/**
 * Reads a body that arrived together with its head. Resolves at 'close': before that, `isUnread`
 * may be true, and the answer would close the connection.
 */
function takeWhole(request: IncomingMessage): Promise<Buffer> {
  const body: Buffer = request.read() ?? Buffer.alloc(0)
  return new Promise((resolve, reject) => {
    request.once('close', () => {
      if (request.readableEnded) resolve(body)
      else reject(new CallerGoneError('the caller hung up'))
    })
  })
}

/** The first reservation for a body that is compressed or announces no length. */
const EXPECTED_BYTES = 64 * 1024

/**
 * Reads a whole body as it arrives, inflated. Throws what `readBody` throws.
 *
 * @param announced the announced length, or infinity.
 * @param bytes the most bytes of the body, both as sent and as inflated.
 */
async function readArriving(
  context: BodyContext,
  { coding, announced, bytes }: { coding: Coding; announced: number; bytes: number },
  memory: { reserve(context: BodyContext, bytes: number): { raise(to: number): void } },
  withinMs?: number,
): Promise<Buffer> {
  const { fixed, share } = INFLATER_MEMORY[coding]
  const expected = coding === 'identity' && Number.isFinite(announced) ? announced : EXPECTED_BYTES
  const reservation = memory.reserve(context, fixed + expected * (1 + share))
  const body = createGrowingBuffer({ expected, most: bytes }, (capacity) =>
    reservation.raise(fixed + capacity * (1 + share)),
  )
  allowBody(context)
  const { signal: stop, unwatch } = watchPace(context, withinMs)
  try {
    for await (const chunk of bodyChunks(context.request, coding, {
      bytes,
      limit: 'bodyBytes',
      stop,
    }))
      body.add(chunk)
  } catch (error) {
    if (error instanceof ProblemError) context.chargedBytes += body.length
    throw error
  } finally {
    unwatch()
  }
  return body.take()
}

/**
 * A body that is kept in memory must arrive within this time. Otherwise a slow sender could occupy
 * memory for ever.
 */
const READ_WITHIN_MS = 60_000

/** Until a body is complete, at least `SPAN_BYTES` of it must arrive in each span of `SPAN_MS`. */
const SPAN_MS = 10_000
const SPAN_BYTES = 10_000

/** Returns a signal that aborts when the body is too slow, or nobody waits for it any more. */
function watchPace({ request, signal }: BodyContext, withinMs = READ_WITHIN_MS) {
  const slow = new AbortController()
  const spanMs = Math.min(withinMs, SPAN_MS)
  let spans = Math.ceil(withinMs / spanMs)
  let received = request.socket.bytesRead
  const giveUp = (detail: string) => slow.abort(new ProblemError('request_timeout', { detail }))
  const check = () => {
    // If received bytes wait for us to read them, the sender is not too slow.
    if (request.complete || request.readableLength > 0 || request.socket.isPaused()) return
    const before = received
    received = request.socket.bytesRead
    spans -= 1
    if (spans === 0) giveUp(`The body did not arrive completely within ${withinMs / 1000} seconds.`)
    else if (received - before < SPAN_BYTES)
      giveUp(
        `The body arrived too slowly: less than ${SPAN_BYTES} bytes in ${spanMs / 1000} seconds.`,
      )
  }
  // Check after the next read: if the event loop was blocked, bytes may have arrived that are not
  // read yet.
  const timer = setInterval(() => setImmediate(check), spanMs)
  return { signal: AbortSignal.any([signal, slow.signal]), unwatch: () => clearInterval(timer) }
}

/**
 * The content codings of a body (RFC 9110, section 8.4), with the memory of each inflater: `fixed`
 * bytes, and `share` bytes for each byte of inflated text that is kept. The share is needed because
 * the windows of brotli (16 MiB) and zstd (8 MiB) are filled only by inflated text.
 */
export const INFLATER_MEMORY = {
  identity: { fixed: 0, share: 0 },
  gzip: { fixed: 128 * 1024, share: 0 },
  deflate: { fixed: 128 * 1024, share: 0 },
  br: { fixed: 512 * 1024, share: 1 },
  zstd: { fixed: 512 * 1024, share: 1 },
}

export type Coding = keyof typeof INFLATER_MEMORY

/**
 * Checks the media type, charset and coding of a body.
 * @param accepted media types in lower case.
 * @throws {ProblemError} 415.
 */
export function checkContentType(
  { headers }: IncomingMessage,
  accepted: readonly string[],
): { mediaType: string; coding: Coding } {
  const [mediaType = '', ...parameters] = (headers['content-type'] ?? '')
    .split(';')
    .map((part) => part.trim().toLowerCase())
  if (!accepted.includes(mediaType)) {
    const reason =
      mediaType === ''
        ? 'The header Content-Type is missing.'
        : 'This Content-Type is not supported.'
    throw new ProblemError('media_type_unsupported', {
      detail: `${reason} Send ${accepted.join(' or ')}.`,
    })
  }
  const charset = parameters
    .find((parameter) => parameter.startsWith('charset='))
    ?.slice('charset='.length)
    .replaceAll('"', '')
  if (charset !== undefined && charset !== 'utf-8' && charset !== 'utf8')
    throw new ProblemError('charset_unsupported')
  return { mediaType, coding: codingOf(headers['content-encoding'] ?? '') }
}

function codingOf(header: string): Coding {
  const name = header.trim().toLowerCase() || 'identity'
  if (name === 'x-gzip') return 'gzip'
  if (!isCoding(name)) throw new ProblemError('encoding_unsupported')
  return name
}

const isCoding = (name: string): name is Coding => Object.hasOwn(INFLATER_MEMORY, name)

type CompressedCoding = Exclude<Coding, 'identity'>

/** A frame of zstd may ask for a window of any size. RFC 9659 allows 8 MiB in HTTP. */
const ZSTD_WINDOW_LOG = 23

/**
 * The low four bits of a zlib stream's first byte are 8 (RFC 1950). Some clients send a raw deflate
 * stream instead.
 */
const isZlib = (first: number) => (first & 0x0f) === 8

function createInflater(coding: CompressedCoding, first: Buffer): Inflater {
  if (coding === 'gzip') return zlib.createGunzip()
  if (coding === 'br') return zlib.createBrotliDecompress()
  if (coding === 'zstd')
    return zlib.createZstdDecompress({
      params: { [zlib.constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG },
    })
  return isZlib(first[0] ?? 0) ? zlib.createInflate() : zlib.createInflateRaw()
}

interface ChunkBounds {
  /** The most bytes of the body, as sent and as inflated. */
  bytes: number
  limit: SizeLimit
  /** Aborts when nobody waits for the rest of the body. The reason is the error to throw. */
  stop: AbortSignal
}

/**
 * Yields a body's chunks, inflated. Leaves the body open and without listeners, so that the caller
 * can drain the rest.
 *
 * @throws {ProblemError} 413 above the bound, 400 if the body does not inflate, or the reason of
 * `stop`.
 */
export async function* bodyChunks(
  body: Readable,
  coding: Coding,
  bounds: ChunkBounds,
): AsyncGenerator<Buffer> {
  const ended = new AbortController()
  const stop = AbortSignal.any([bounds.stop, ended.signal])
  const sent = bounded(sentChunks(body, stop), bounds)
  try {
    yield* coding === 'identity' ? sent : bounded(inflate(sent, coding), bounds)
  } finally {
    ended.abort()
  }
}

async function* bounded(
  chunks: AsyncIterable<Buffer>,
  { bytes, limit }: Pick<ChunkBounds, 'bytes' | 'limit'>,
): AsyncGenerator<Buffer> {
  let size = 0
  for await (const chunk of chunks) {
    size += chunk.length
    if (size > bytes) throw bodyTooLarge(bytes, limit)
    yield chunk
  }
}

/**
 * Each zstd frame costs a separate stream, about 1 ms. The bound admits an import of 100 MiB in
 * frames of 105 KB.
 */
const MAX_MEMBERS = 1_000

async function* inflate(
  chunks: AsyncGenerator<Buffer>,
  coding: CompressedCoding,
): AsyncGenerator<Buffer> {
  const open = (beginning: Buffer, members: number) => {
    if (members === MAX_MEMBERS)
      throw bodyUnreadable(
        'not_decodable',
        `The body has more than ${MAX_MEMBERS} members or frames of ${coding}.`,
      )
    if (members > 0 && (coding === 'br' || coding === 'deflate')) throw notDecodable(coding)
    return createInflater(coding, beginning)
  }
  try {
    yield* inflateMembers(chunks, open)
  } catch (error) {
    throw error instanceof UndecodableError ? notDecodable(coding) : error
  }
}

function notDecodable(coding: CompressedCoding): ProblemError {
  return bodyUnreadable(
    'not_decodable',
    `The body is not valid ${coding}, or bytes follow its end.`,
  )
}

/**
 * Yields the chunks as sent. Not by `for await` over the body, which would destroy the connection
 * if the consumer throws.
 */
async function* sentChunks(body: Readable, stop: AbortSignal): AsyncGenerator<Buffer> {
  let onChange = () => {}
  let end: { error?: unknown } | undefined
  const wake = () => onChange()
  const unwatch = onFinished(body, { writable: false }, (error) => {
    end = error ? { error } : {}
    wake()
  })
  body.on('readable', wake)
  stop.addEventListener('abort', wake)
  try {
    for (;;) {
      if (stop.aborted) throw stop.reason
      const chunk: Buffer | null = body.destroyed ? null : body.read()
      if (chunk !== null) yield chunk
      else if (end === undefined) await new Promise<void>((resolve) => (onChange = resolve))
      else if (end.error !== undefined)
        throw new CallerGoneError('the caller hung up', { cause: end.error })
      else return
    }
  } finally {
    stop.removeEventListener('abort', wake)
    body.off('readable', wake)
    unwatch()
  }
}

const EMPTY: Buffer = Buffer.alloc(0)

/**
 * The smallest capacity of a buffer with at least two chunks. A single chunk is kept without a
 * copy.
 */
const LEAST_BYTES = 16 * 1024

/**
 * Creates a buffer that joins the chunks of a body, because each separate chunk costs about 400
 * bytes more than its length.
 *
 * @param expected the probable number of bytes, or 0. `most`: the largest number that is ever
 * added.
 * @param ensure is called with each new capacity before it is allocated, and may throw to refuse
 * it.
 */
export function createGrowingBuffer(
  { expected, most }: { expected: number; most: number },
  ensure: (capacity: number) => void,
) {
  let buffer: Buffer = EMPTY
  let length = 0

  function makeRoom(needed: number): void {
    if (needed <= buffer.length) return
    const capacity = Math.max(
      needed,
      Math.min(most, Math.max(expected, 2 * buffer.length, LEAST_BYTES)),
    )
    ensure(capacity)
    // Not from Node's pool, because memory in the pool can't be moved to another thread.
    const larger = Buffer.allocUnsafeSlow(capacity)
    buffer.copy(larger, 0, 0, length)
    buffer = larger
  }

  return {
    get length() {
      return length
    },
    add(chunk: Buffer): void {
      if (length === 0) buffer = chunk
      else {
        makeRoom(length + chunk.length)
        chunk.copy(buffer, length)
      }
      length += chunk.length
    },
    take(): Buffer {
      const bytes = buffer.subarray(0, length)
      buffer = EMPTY
      length = 0
      return bytes
    },
  }
}

/**
 * Asks for the body of a caller that waits for permission to send it (RFC 9110, section 10.1.1).
 */
export function allowBody({
  request,
  response,
}: Pick<RequestContext, 'request' | 'response'>): void {
  if (request.headers.expect?.toLowerCase() !== '100-continue') return
  response.writeContinue()
  delete request.headers.expect
}

const DRAIN_BYTES = 64 * 1024 * 1024
const DRAIN_MS = 5_000

/**
 * Discards the rest of a body. Resolves with false if the rest is too long, or takes longer than
 * `ms`. Never rejects.
 */
export async function drainBody(request: IncomingMessage, ms = DRAIN_MS): Promise<boolean> {
  const over = Promise.withResolvers<boolean>()
  const timer = setTimeout(over.resolve, ms, false)
  let drained = 0
  const count = ({ length }: Buffer) => {
    drained += length
    if (drained > DRAIN_BYTES) over.resolve(false)
  }
  request.on('data', count).resume()
  const ended = finished(request, { writable: false }).catch(() => {})
  const isComplete = await Promise.race([ended.then(() => true), over.promise])
  clearTimeout(timer)
  if (!isComplete) request.off('data', count).pause()
  return isComplete
}

/**
 * Ends an answer once the body is drained. If the connection were closed while its caller still
 * sends, the answer would be lost.
 */
export async function endAfter(
  draining: Promise<boolean>,
  response: ServerResponse,
): Promise<void> {
  const isComplete = await draining
  response.end()
  if (!isComplete) response.req.socket.destroySoon()
}
