// Asks for a body that the caller has not sent yet, and drains a body that the handler has not read.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { finished } from 'node:stream/promises'
import type { RequestContext } from './request-context.ts'

/** Asks for the body of a caller that waits for permission to send it (RFC 9110, section 10.1.1). */
export function allowBody({ request, response }: Pick<RequestContext, 'request' | 'response'>): void {
  if (request.headers.expect?.toLowerCase() !== '100-continue') return
  response.writeContinue()
  delete request.headers.expect
}

/** Whether a part of the body was not read yet, unless the caller will not send it. */
export function isUnread({ readableEnded, destroyed, headers }: IncomingMessage): boolean {
  if (readableEnded || destroyed) return false
  // A caller that asked to continue and got an answer instead does not send its body.
  if (headers.expect !== undefined) return false
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

const DRAIN_BYTES = 64 * 1024 * 1024
const DRAIN_MS = 5_000

/** Discards the rest of a body. Resolves with false if it exceeded the bound or lasted beyond `ms`. Never rejects. */
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
 * Ends an answer after the rest of the request's body was drained: closing the connection of a caller that still sends
 * would lose the answer. If draining gave up, closes the connection too.
 */
export async function endAfter(draining: Promise<boolean>, response: ServerResponse): Promise<void> {
  const isComplete = await draining
  response.end()
  if (!isComplete) response.req.socket.destroySoon()
}
