import type { IncomingMessage } from 'node:http'
import { PROBLEM_MEDIA_TYPE } from '@sluice/contract'
import type { Answer, Call } from './call.ts'

/** What of a body that nobody reads is taken in, so that its sender comes to read the answer: bytes, and ms. */
const DRAIN_BYTES = 64 * 1024 * 1024
const DRAIN_MS = 5_000

/**
 * Sends an answer as JSON. Where the request's body was not read to its end the answer goes out at once, but the connection closes only once
 * the rest has come, within bounds: a connection closed on a caller that still sends loses the answer.
 */
export function sendAnswer(call: Call, { status, body, headers = {} }: Answer, closing: boolean): void {
  sendJson(call, { status, text: JSON.stringify(body), headers }, closing)
}

/** As `sendAnswer`, of a body that is JSON text already. */
export function sendJson(
  { request, response, requestId }: Call,
  { status, text, headers }: { status: number; text: string; headers: Readonly<Record<string, string>> },
  closing: boolean,
): void {
  const unread = isUnread(request)
  response.writeHead(status, {
    'content-type': status >= 400 ? PROBLEM_MEDIA_TYPE : 'application/json',
    'content-length': Buffer.byteLength(text),
    'x-request-id': requestId,
    ...headers,
    ...((unread || closing) && { connection: 'close' }),
  })
  if (!unread) response.end(request.method === 'HEAD' ? undefined : text)
  else {
    response.write(text)
    void endAfter({ request, response }, drain(request))
  }
}

/** Ends an answer once the rest of its request's body was drained. Where that was given up, the connection closes with the answer. */
export async function endAfter(
  { request, response }: Pick<Call, 'request' | 'response'>,
  draining: Promise<boolean>,
): Promise<void> {
  const whole = await draining
  response.end()
  if (!whole) request.socket.destroySoon()
}

/** Takes in the rest of a body that nobody reads any more; false where that was too much, or took longer than `ms`. Never throws. */
export function drain(request: IncomingMessage, ms = DRAIN_MS): Promise<boolean> {
  if (!isUnread(request)) return Promise.resolve(true)
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

function isUnread({ readableEnded, destroyed, headers }: IncomingMessage): boolean {
  if (readableEnded || destroyed) return false
  // Who waits for leave to send its body got an answer instead, and won't send it.
  if (headers.expect !== undefined) return false
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}
