// Reads a request's body: checks its headers, reads it as a whole within bounds, and parses its JSON.
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { Transform } from 'node:stream'
import { type Coding, codingOf, createInflater } from './content-coding.ts'
import {
  bodyTooLarge,
  bodyUnreadable,
  CallerGoneError,
  charsetUnsupported,
  jsonInvalid,
  mediaTypeUnsupported,
  type SizeLimit,
  serviceStopping,
} from './problems.ts'
import type { RequestContext } from './request-context.ts'

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
  if (charset !== undefined && charset !== 'utf-8' && charset !== 'utf8') throw charsetUnsupported()
  const encoding = headers['content-encoding']
  return { mediaType, coding: encoding === undefined ? 'identity' : codingOf(encoding) }
}

/** Checks the length that a body announces. @throws {ProblemError} 413. */
export function checkContentLength({ headers }: IncomingMessage, bytes: number, limit: SizeLimit): void {
  if (Number(headers['content-length'] ?? 0) > bytes) throw bodyTooLarge(bytes, limit)
}

/** Lets a caller that waits for permission send its body (RFC 9110, section 10.1.1). From then on it is like any other body. */
export function allowBody({ request, response }: Pick<RequestContext, 'request' | 'response'>): void {
  if (request.headers.expect?.toLowerCase() !== '100-continue') return
  response.writeContinue()
  delete request.headers.expect
}

/** A body that is kept in memory must arrive within this time, in ms: a trickle would keep the memory for ever. */
const READ_WITHIN_MS = 60_000

/**
 * Reads a whole body, inflated. It keeps at most `bytes` in memory.
 *
 * @param graceOver aborts when the process can't wait for the rest any longer.
 * @param withinMs how long the body may take.
 * @throws {ProblemError} 413 beyond `bytes`, as sent or inflated; 400 if it does not inflate or takes too long; 503 when the grace time is over.
 * @throws {CallerGoneError}
 */
export async function readBody(
  { request, response }: Pick<RequestContext, 'request' | 'response'>,
  coding: Coding,
  bytes: number,
  graceOver: AbortSignal,
  withinMs = READ_WITHIN_MS,
): Promise<Buffer> {
  allowBody({ request, response })
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const chunks: Buffer[] = []
  let received = 0
  let size = 0
  let inflater: Transform | undefined

  function keep(chunk: Buffer): void {
    size += chunk.length
    if (size > bytes) reject(bodyTooLarge(bytes, 'bodyBytes'))
    else chunks.push(chunk)
  }
  const done = () => resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks))

  function openInflater(first: Buffer): Transform | undefined {
    if (coding === 'identity') return undefined
    return createInflater(coding, first)
      .on('data', keep)
      .on('end', done)
      .on('drain', () => request.resume())
      .on('error', () => reject(bodyUnreadable('not_decodable', `The body is not valid ${coding}.`)))
  }

  function onData(chunk: Buffer): void {
    received += chunk.length
    if (received > bytes) reject(bodyTooLarge(bytes, 'bodyBytes'))
    if (received === chunk.length) inflater = openInflater(chunk)
    if (inflater === undefined) keep(chunk)
    else if (!inflater.write(chunk)) request.pause()
  }
  const onEnd = () => (inflater === undefined ? done() : inflater.end())
  function onClose(): void {
    // A body that has arrived completely closes its request, too, and may be inflated only later.
    if (!request.readableEnded) reject(new CallerGoneError('the caller hung up'))
  }
  const onStop = () => reject(serviceStopping())
  const onLate = () =>
    reject(bodyUnreadable('incomplete', `The body did not arrive completely within ${withinMs / 1000} seconds.`))

  request.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose)
  graceOver.addEventListener('abort', onStop)
  const timer = setTimeout(onLate, withinMs)
  try {
    if (graceOver.aborted) onStop()
    return await promise
  } finally {
    clearTimeout(timer)
    request.off('data', onData).off('end', onEnd).off('close', onClose)
    graceOver.removeEventListener('abort', onStop)
    inflater?.removeAllListeners('data').destroy()
  }
}

const BYTE_ORDER_MARK = '\ufeff'

/** Parses JSON text in UTF-8. @throws {ProblemError} 400 if the bytes are no UTF-8, or the text is no JSON (RFC 8259). */
export function parseJson(body: Buffer): unknown {
  if (!isUtf8(body)) throw bodyUnreadable('not_decodable', 'The body is not valid UTF-8.')
  const text = body.toString('utf8')
  try {
    return JSON.parse(text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text)
  } catch (error) {
    throw jsonInvalid(placeOf(error))
  }
}

/** The place that V8's message names. The rest of the message repeats the body. */
function placeOf(error: unknown): string {
  const place =
    error instanceof Error ? /at position \d+( \(line \d+ column \d+\))?/.exec(error.message)?.[0] : undefined
  return place === undefined ? '' : ` ${place}`
}
