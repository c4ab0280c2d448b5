// Asks for the body of a caller that waits for permission to send it, and drains a body that nobody
// reads.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { finished } from 'node:stream/promises'
import type { RequestContext } from '../request/request-context.ts'

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
