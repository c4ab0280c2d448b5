import { once } from 'node:events'
import type { Readable, Transform } from 'node:stream'
import { bodyTooLarge, type Coding } from '../body-head.ts'
import { createInflater } from '../inflater.ts'
import { ProblemError } from '../problem-error.ts'
import { bodyChunks } from './body-chunks.ts'

/**
 * A batch's chunks, inflated.
 *
 * @param bytes how large the body may be, as sent and inflated.
 * @throws {ProblemError} where it is larger, does not inflate, or the process stops; the chunks before were given.
 */
export async function* inflatedChunks(
  body: Readable,
  coding: Coding,
  bytes: number,
  stopping: AbortSignal,
): AsyncGenerator<Buffer> {
  const left = new AbortController()
  const sent = bounded(bodyChunks(body, AbortSignal.any([stopping, left.signal])), bytes)
  try {
    yield* coding === 'identity' ? sent : bounded(inflate(sent, coding, left.signal), bytes)
  } finally {
    left.abort()
  }
}

async function* bounded(chunks: AsyncIterable<Buffer>, bytes: number): AsyncGenerator<Buffer> {
  let size = 0
  for await (const chunk of chunks) {
    size += chunk.length
    if (size > bytes) throw bodyTooLarge(bytes, 'batchBytes')
    yield chunk
  }
}

async function* inflate(chunks: AsyncGenerator<Buffer>, coding: Coding, left: AbortSignal): AsyncGenerator<Buffer> {
  const first = await chunks.next()
  if (first.done) return
  const inflater = createInflater(coding, first.value)
  if (inflater === undefined) throw new Error(`nothing inflates ${coding}`)
  let failure: unknown
  const feeding = feed(inflater, first.value, chunks, left).catch((error) => {
    failure = error
    inflater.destroy()
  })
  try {
    yield* inflater
  } catch {
    throw failure ?? new ProblemError('body_unreadable', { detail: `The body is not valid ${coding}.` })
  }
  await feeding
  if (failure !== undefined) throw failure
}

async function feed(inflater: Transform, first: Buffer, rest: AsyncIterable<Buffer>, left: AbortSignal): Promise<void> {
  const write = async (chunk: Buffer) => {
    if (!inflater.write(chunk)) await once(inflater, 'drain', { signal: left })
  }
  await write(first)
  for await (const chunk of rest) await write(chunk)
  inflater.end()
}
