// Reads a body that did not arrive with its head, within bounds of size, time and memory, or drains it unread.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { finished } from 'node:stream/promises'
import { ProblemError } from '../request/problem-error.ts'
import type { RequestContext } from '../request/request-context.ts'
import { bodyChunks, type Coding, INFLATER_MEMORY } from './body-chunks.ts'

export type BodyContext = Pick<RequestContext, 'request' | 'response' | 'tenant' | 'signal' | 'chargedBytes'>

/** Reserved at first for a body that is compressed or announces no length. */
const EXPECTED_BYTES = 64 * 1024

/**
 * Reads a whole body as it arrives, inflated. Throws what `readBody` throws.
 *
 * @param announced the announced length, or infinity. `bytes`: the most bytes of the body, as sent and as inflated.
 */
export async function readArriving(
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
    for await (const chunk of bodyChunks(context.request, coding, { bytes, limit: 'bodyBytes', stop })) body.add(chunk)
  } catch (error) {
    if (error instanceof ProblemError) context.chargedBytes += body.length
    throw error
  } finally {
    unwatch()
  }
  return body.take()
}

/** A body that is kept in memory must arrive within this time: a trickle would occupy the memory for ever. */
const READ_WITHIN_MS = 60_000

/** Until a body is complete, at least `SPAN_BYTES` of it must arrive in each span of `SPAN_MS`. */
const SPAN_MS = 10_000
const SPAN_BYTES = 10_000

/** Returns a signal that aborts when the body is too slow, or when nobody waits for it any more. */
function watchPace({ request, signal }: BodyContext, withinMs = READ_WITHIN_MS) {
  const slow = new AbortController()
  const spanMs = Math.min(withinMs, SPAN_MS)
  let spans = Math.ceil(withinMs / spanMs)
  let received = request.socket.bytesRead
  const giveUp = (detail: string) => slow.abort(new ProblemError('request_timeout', { detail }))
  const check = () => {
    // If received bytes still wait for us to read them, the sender is not too slow.
    if (request.complete || request.readableLength > 0 || request.socket.isPaused()) return
    const before = received
    received = request.socket.bytesRead
    spans -= 1
    if (spans === 0) giveUp(`The body did not arrive completely within ${withinMs / 1000} seconds.`)
    else if (received - before < SPAN_BYTES)
      giveUp(`The body arrived too slowly: less than ${SPAN_BYTES} bytes in ${spanMs / 1000} seconds.`)
  }
  // If the event loop was blocked, it must read what has arrived meanwhile before the pace is judged.
  const timer = setInterval(() => setImmediate(check), spanMs)
  return { signal: AbortSignal.any([signal, slow.signal]), unwatch: () => clearInterval(timer) }
}

const EMPTY: Buffer = Buffer.alloc(0)

/** The least capacity of a buffer with two or more chunks. A single chunk is kept as it is, without a copy. */
const LEAST_BYTES = 16 * 1024

/**
 * Creates a buffer that joins the chunks of a body: each separate chunk costs some 400 bytes more than its length.
 *
 * @param expected the probable number of bytes, or 0. `most`: the largest number that is ever added.
 * @param ensure receives each new capacity before it is allocated, and may throw to refuse it.
 */
export function createGrowingBuffer(
  { expected, most }: { expected: number; most: number },
  ensure: (capacity: number) => void,
) {
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

/** Asks for the body of a caller that waits for permission to send it (RFC 9110, section 10.1.1). */
export function allowBody({ request, response }: Pick<RequestContext, 'request' | 'response'>): void {
  if (request.headers.expect?.toLowerCase() !== '100-continue') return
  response.writeContinue()
  delete request.headers.expect
}

const DRAIN_BYTES = 64 * 1024 * 1024
const DRAIN_MS = 5_000

/** Discards the rest of a body. Resolves with false beyond a bound of bytes or `ms`. Never rejects. */
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

/** Ends an answer once the body is drained: closing a connection while its caller sends would lose the answer. */
export async function endAfter(draining: Promise<boolean>, response: ServerResponse): Promise<void> {
  const isComplete = await draining
  response.end()
  if (!isComplete) response.req.socket.destroySoon()
}
