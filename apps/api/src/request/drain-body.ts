// Discards the rest of a body that nobody reads, so that its sender sees the answer.
import type { IncomingMessage, ServerResponse } from 'node:http'

/** The bounds of draining, in bytes and in ms. */
const DRAIN_BYTES = 64 * 1024 * 1024
const DRAIN_MS = 5_000

/** Discards the rest of a body. Resolves with false if it exceeded the bound or lasted beyond `ms`. Never rejects. */
export function drainBody(request: IncomingMessage, ms = DRAIN_MS): Promise<boolean> {
  if (request.readableEnded || request.destroyed) return Promise.resolve(true)
  const { promise, resolve } = Promise.withResolvers<boolean>()
  let drained = 0
  const giveUp = () => {
    request.off('data', count).pause()
    resolve(false)
  }
  const done = () => resolve(true)
  const timer = setTimeout(giveUp, ms)
  const count = (chunk: Buffer) => {
    drained += chunk.length
    if (drained > DRAIN_BYTES) giveUp()
  }
  request.on('data', count).once('end', done).once('error', done).once('close', done)
  request.resume()
  return promise.finally(() => clearTimeout(timer))
}

/** Ends an answer after the rest of the request's body was drained. If draining gave up, closes the connection too. */
export async function endAfter(
  draining: Promise<boolean>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const complete = await draining
  response.end()
  if (!complete) request.socket.destroySoon()
}
