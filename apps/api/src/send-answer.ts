import type { ServerResponse } from 'node:http'
import { PROBLEM_MEDIA_TYPE } from '@sluice/contract'
import type { Answer, Call } from './call.ts'

/** What of a body that nobody reads is taken in, so that its sender comes to read the answer: bytes, and ms. */
const DRAIN_BYTES = 64 * 1024 * 1024
const DRAIN_MS = 5_000

/**
 * Sends an answer as JSON. Where the request's body was not read to its end the answer goes out at once, but the connection closes only once
 * the rest has come, within bounds: a connection closed on a caller that still sends loses the answer.
 */
export function sendAnswer(
  { request, response, requestId }: Call,
  { status, body, headers = {} }: Answer,
  closing: boolean,
): void {
  const text = JSON.stringify(body)
  const unread = !request.readableEnded && !request.destroyed && hasBody(request.headers)
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
    drain(request, response)
  }
}

function hasBody(headers: Call['request']['headers']): boolean {
  // Who waits for leave to send its body got an answer instead, and won't send it.
  if (headers.expect !== undefined) return false
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

function drain(request: Call['request'], response: ServerResponse): void {
  let drained = 0
  const timer = setTimeout(giveUp, DRAIN_MS)
  function giveUp(): void {
    finish()
    request.socket.destroySoon()
  }
  function finish(): void {
    clearTimeout(timer)
    response.end()
  }
  request.on('data', (chunk: Buffer) => {
    drained += chunk.length
    if (drained > DRAIN_BYTES) giveUp()
  })
  request.once('end', finish).once('error', finish).once('close', finish)
  request.resume()
}
