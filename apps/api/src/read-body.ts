import type { Transform } from 'node:stream'
import { bodyTooLarge, type Coding } from './body-head.ts'
import type { Call } from './call.ts'
import { createInflater } from './inflater.ts'
import { ProblemError } from './problem-error.ts'

/** The caller hung up before its body was whole; nobody hears an answer. */
export class CallerGoneError extends Error {}

/** A body that is held in memory must have come in this time, in ms: a trickle would hold it for ever. */
const WHOLE_WITHIN_MS = 60_000

/**
 * Reads a body whole, inflated, holding never more than its bound in memory.
 *
 * @param stopping aborts when the process can't wait for the rest any longer.
 * @param withinMs how long the body may take.
 * @throws {ProblemError} 413 past `bytes`, as sent or inflated; 400 where it does not inflate or takes too long; 503 when stopping.
 * @throws {CallerGoneError}
 */
export async function readBody(
  { request, response }: Pick<Call, 'request' | 'response'>,
  coding: Coding,
  bytes: number,
  stopping: AbortSignal,
  withinMs = WHOLE_WITHIN_MS,
): Promise<Buffer> {
  askForBody({ request, response })
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const inflated: Buffer[] = []
  let received = 0
  let size = 0
  let inflater: Transform | undefined

  function keep(chunk: Buffer): void {
    size += chunk.length
    if (size > bytes) reject(bodyTooLarge(bytes))
    else inflated.push(chunk)
  }
  const done = () => resolve(inflated.length === 1 && inflated[0] !== undefined ? inflated[0] : Buffer.concat(inflated))

  function openInflater(first: Buffer): Transform | undefined {
    const created = createInflater(coding, first)
    created
      ?.on('data', keep)
      .on('end', done)
      .on('drain', () => request.resume())
    created?.on('error', () => reject(unreadable(`The body is not valid ${coding}.`)))
    return created
  }

  function onData(chunk: Buffer): void {
    received += chunk.length
    if (received > bytes) reject(bodyTooLarge(bytes))
    if (received === chunk.length) inflater = openInflater(chunk)
    if (inflater === undefined) keep(chunk)
    else if (!inflater.write(chunk)) request.pause()
  }
  const onEnd = () => (inflater === undefined ? done() : inflater.end())
  function onClose(): void {
    // A body that has come whole closes its request, too, and may be inflated only later.
    if (!request.readableEnded) reject(new CallerGoneError('the caller hung up'))
  }
  const onStopping = () => reject(serviceStops())
  const onLate = () => reject(unreadable(`The body did not come whole within ${withinMs / 1000} seconds.`))

  request.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose)
  stopping.addEventListener('abort', onStopping)
  const timer = setTimeout(onLate, withinMs)
  try {
    if (stopping.aborted) onStopping()
    return await promise
  } finally {
    clearTimeout(timer)
    request.off('data', onData).off('end', onEnd).off('close', onClose)
    stopping.removeEventListener('abort', onStopping)
    inflater?.removeAllListeners('data').destroy()
  }
}

function unreadable(detail: string): ProblemError {
  return new ProblemError('body_unreadable', { detail })
}

/** Gives leave to send the body to who waits for it (RFC 9110, section 10.1.1). From then on the body comes, as any other. */
export function askForBody({ request, response }: Pick<Call, 'request' | 'response'>): void {
  if (request.headers.expect?.toLowerCase() !== '100-continue') return
  response.writeContinue()
  delete request.headers.expect
}

/** What was not read when the process had to stop is for another one. */
export function serviceStops(): ProblemError {
  return new ProblemError('stopping', { detail: 'The service stops; send the request again.' }, { 'retry-after': '1' })
}
