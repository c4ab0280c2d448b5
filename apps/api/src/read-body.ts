import type { Transform } from 'node:stream'
import { bodyTooLarge, type Coding } from './body-head.ts'
import type { Call } from './call.ts'
import { createInflater } from './inflater.ts'
import { ProblemError } from './problem-error.ts'

/** The caller hung up before its body was whole; nobody hears an answer. */
export class CallerGoneError extends Error {}

/**
 * Reads a body whole, inflated, holding never more than its bound in memory.
 *
 * @param stopping aborts when the process can't wait for the rest any longer.
 * @throws {ProblemError} 413 past `bytes`, as sent or inflated; 400 where it does not inflate; 503 when stopping.
 * @throws {CallerGoneError}
 */
export async function readBody(
  { request, response }: Call,
  coding: Coding,
  bytes: number,
  stopping: AbortSignal,
): Promise<Buffer> {
  if (request.headers.expect?.toLowerCase() === '100-continue') response.writeContinue()
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
  const onStopping = () =>
    reject(
      new ProblemError('stopping', { detail: 'The service stops; send the request again.' }, { 'retry-after': '1' }),
    )

  request.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose)
  stopping.addEventListener('abort', onStopping)
  try {
    if (stopping.aborted) onStopping()
    return await promise
  } finally {
    request.off('data', onData).off('end', onEnd).off('close', onClose)
    stopping.removeEventListener('abort', onStopping)
    inflater?.removeAllListeners('data').destroy()
  }
}

function unreadable(detail: string): ProblemError {
  return new ProblemError('body_unreadable', { detail })
}
