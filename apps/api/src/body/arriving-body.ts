// Reads a body that did not arrive with its head, within bounds of size, time and memory.
import type { IncomingMessage } from 'node:http'
import { bodyTooLarge, bodyUnreadable, CallerGoneError, ProblemError } from '../request/problem-error.ts'
import type { RequestContext } from '../request/request-context.ts'
import { bodyChunks, type Coding, INFLATER_MEMORY } from './body-chunks.ts'
import type { BodyMemory } from './overload.ts'

export type ArrivingDeps = { bodyMemory: Pick<BodyMemory, 'reserve'> }

/** The parts of a request's context that reading its body needs. */
export type BodyContext = Pick<RequestContext, 'request' | 'response' | 'tenant' | 'signal' | 'refusedBytes'>

/** A body that announces no length is expected to have this many bytes, until more arrive. */
const EXPECTED_BYTES = 64 * 1024

/**
 * Reads a whole body as it arrives, inflated.
 *
 * @param form its coding, the length that it announces (or infinity), and the bound as sent and inflated, in bytes.
 * @param withinMs the time within which the body must arrive.
 * @throws what `readBody` throws.
 */
export async function readArriving(
  context: BodyContext,
  { coding, announced, bytes }: { coding: Coding; announced: number; bytes: number },
  { bodyMemory }: ArrivingDeps,
  withinMs?: number,
): Promise<Buffer> {
  const { request } = context
  // A destroyed request reports its end no second time, so waiting for it would never end.
  if (request.destroyed) throw new CallerGoneError('the caller hung up')
  const { fixed, share } = INFLATER_MEMORY[coding]
  const expected = coding === 'identity' && Number.isFinite(announced) ? announced : EXPECTED_BYTES
  const reservation = bodyMemory.reserve(context, fixed + expected * (1 + share))
  const body = createGrowingBuffer({ expected, most: bytes }, (capacity) =>
    reservation.raise(fixed + capacity * (1 + share)),
  )
  allowBody(context)
  const watch: Watch = (giveUp) => watchPace(context, giveUp, withinMs)
  try {
    if (coding === 'identity') await readPlain(request, body, bytes, watch)
    else await readInflated(request, coding, body, bytes, watch)
  } catch (error) {
    if (error instanceof ProblemError) context.refusedBytes += body.length
    throw error
  }
  return body.take()
}

/** Asks for the body of a caller that waits for permission to send it (RFC 9110, section 10.1.1). */
export function allowBody({ request, response }: Pick<RequestContext, 'request' | 'response'>): void {
  if (request.headers.expect?.toLowerCase() !== '100-continue') return
  response.writeContinue()
  delete request.headers.expect
}

/** Watches how a body arrives, until the returned function is called. */
type Watch = (giveUp: (error: Error) => void) => () => void

/** Reads by events: most bodies are one chunk, and iterating is half as fast. */
async function readPlain(request: IncomingMessage, body: GrowingBuffer, bytes: number, watch: Watch): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const onData = (chunk: Buffer) => {
    if (body.length + chunk.length > bytes) return reject(bodyTooLarge(bytes, 'bodyBytes'))
    try {
      body.add(chunk)
    } catch (error) {
      reject(error)
    }
  }
  const onEnd = () => resolve()
  function onClose(): void {
    // Every request closes. An error that nobody needs costs its stack trace.
    if (!request.readableEnded) reject(new CallerGoneError('the caller hung up'))
  }
  request.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose)
  const unwatch = watch(reject)
  try {
    await promise
  } finally {
    unwatch()
    request.off('data', onData).off('end', onEnd).off('close', onClose)
  }
}

async function readInflated(
  request: IncomingMessage,
  coding: Coding,
  body: GrowingBuffer,
  bytes: number,
  watch: Watch,
): Promise<void> {
  const stop = new AbortController()
  const unwatch = watch((error) => stop.abort(error))
  try {
    for await (const chunk of bodyChunks(request, coding, { bytes, limit: 'bodyBytes', stop: stop.signal }))
      body.add(chunk)
  } finally {
    unwatch()
  }
}

/** A body that is kept in memory must arrive within this time: a trickle would occupy the memory for ever. */
const READ_WITHIN_MS = 60_000

/** A body must bring at least `SPAN_BYTES` in each span until it is complete. */
const SPAN_MS = 10_000
const SPAN_BYTES = 10_000

function watchPace(
  { request, signal }: Pick<RequestContext, 'request' | 'signal'>,
  giveUp: (error: Error) => void,
  withinMs = READ_WITHIN_MS,
): () => void {
  const spanMs = Math.min(withinMs, SPAN_MS)
  let spans = Math.ceil(withinMs / spanMs)
  let received = request.socket.bytesRead
  const check = () => {
    const before = received
    received = request.socket.bytesRead
    spans -= 1
    if (spans === 0) giveUp(tooSlow(`The body did not arrive completely within ${withinMs / 1000} seconds.`))
    else if (received - before < SPAN_BYTES && !request.complete && !request.isPaused())
      giveUp(tooSlow(`The body arrived too slowly: less than ${SPAN_BYTES} bytes in ${spanMs / 1000} seconds.`))
  }
  const onAbort = () => giveUp(signal.reason)
  // A loop that was blocked must first read what has arrived in the meantime.
  const timer = setInterval(() => setImmediate(check), spanMs)
  signal.addEventListener('abort', onAbort)
  if (signal.aborted) onAbort()
  return () => {
    clearInterval(timer)
    signal.removeEventListener('abort', onAbort)
  }
}

function tooSlow(message: string): ProblemError {
  return bodyUnreadable('incomplete', message)
}

/** Joins the chunks of a body in one buffer: each separate chunk costs some 400 bytes more than its length. */
interface GrowingBuffer {
  readonly length: number
  add(chunk: Buffer): void
  /** Returns all bytes and starts anew. */
  take(): Buffer
}

const EMPTY: Buffer = Buffer.alloc(0)

/** The least capacity that a second chunk allocates. */
const LEAST_BYTES = 16 * 1024

/**
 * Creates an empty buffer. A single chunk is kept as it is, without a copy.
 *
 * @param expected how many bytes will probably come, or 0.
 * @param most how many bytes are ever added.
 * @param ensure receives each new capacity before it is allocated, and may throw to refuse it.
 */
export function createGrowingBuffer(
  { expected, most }: { expected: number; most: number },
  ensure: (capacity: number) => void,
): GrowingBuffer {
  let buffer: Buffer = EMPTY
  let length = 0

  function makeRoom(needed: number): void {
    if (needed <= buffer.length) return
    const capacity = Math.max(needed, Math.min(most, Math.max(expected, 2 * buffer.length, LEAST_BYTES)))
    ensure(capacity)
    // Not from Node's pool, so that the memory can be moved to another thread.
    const larger = Buffer.allocUnsafeSlow(capacity)
    buffer.copy(larger, 0, 0, length)
    buffer = larger
  }

  return {
    get length() {
      return length
    },
    add(chunk) {
      if (length === 0) buffer = chunk
      else {
        makeRoom(length + chunk.length)
        chunk.copy(buffer, length)
      }
      length += chunk.length
    },
    take() {
      const bytes = length === buffer.length ? buffer : buffer.subarray(0, length)
      buffer = EMPTY
      length = 0
      return bytes
    },
  }
}
