import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { bodyTooLarge, type Coding } from '../body-head.ts'
import { createInflater } from '../inflater.ts'
import { ProblemError } from '../problem-error.ts'

/** One line of a body, or the mark of one that is longer than a line may be and was passed over. */
export type BodyLine = Buffer | 'too long'

/** The lines that came with one piece of the body: what comes next may take its time. */
export type Lines = BodyLine[]

const NEWLINE = 0x0a

/**
 * Reads a body line by line as it comes, inflated, holding never more than a piece and one line of it.
 *
 * @param bounds of the whole body and of a line, in bytes.
 * @throws {ProblemError} where the body is larger than it may be, as sent or inflated, or does not inflate; the lines before were given.
 */
export async function* bodyLines(
  body: Readable,
  coding: Coding,
  bounds: { body: number; line: number },
): AsyncGenerator<Lines> {
  let rest: Buffer[] = []
  let restBytes = 0
  let tooLong = false
  function take(piece: Buffer): void {
    restBytes += piece.length
    if (restBytes > bounds.line) tooLong = true
    if (tooLong) rest = []
    else rest.push(piece)
  }
  function finish(): BodyLine {
    const line = tooLong ? 'too long' : Buffer.concat(rest)
    rest = []
    restBytes = 0
    tooLong = false
    return line
  }
  for await (const chunk of inflated(body, coding, bounds.body)) {
    const lines: Lines = []
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      take(chunk.subarray(start, end))
      lines.push(finish())
      start = end + 1
    }
    if (start < chunk.length) take(chunk.subarray(start))
    yield lines
  }
  if (restBytes > 0) yield [finish()]
}

async function* inflated(body: Readable, coding: Coding, bytes: number): AsyncGenerator<Buffer> {
  let size = 0
  for await (const chunk of coding === 'identity' ? bounded(body, bytes) : inflate(body, coding, bytes)) {
    size += chunk.length
    if (size > bytes) throw bodyTooLarge(bytes)
    yield chunk
  }
}

async function* bounded(body: Readable, bytes: number): AsyncGenerator<Buffer> {
  let received = 0
  for await (const chunk of body) {
    received += chunk.length
    if (received > bytes) throw bodyTooLarge(bytes)
    yield chunk
  }
}

async function* inflate(body: Readable, coding: Coding, bytes: number): AsyncGenerator<Buffer> {
  const chunks = bounded(body, bytes)
  const first = await chunks.next()
  if (first.done) return
  const inflater = createInflater(coding, first.value)
  if (inflater === undefined) throw new Error(`nothing inflates ${coding}`)
  let failure: unknown
  const feed = async () => {
    if (!inflater.write(first.value)) await once(inflater, 'drain')
    for await (const chunk of chunks) if (!inflater.write(chunk)) await once(inflater, 'drain')
    inflater.end()
  }
  feed().catch((error) => {
    failure = error
    inflater.destroy()
  })
  try {
    yield* inflater
  } catch {
    throw failure ?? new ProblemError('body_unreadable', { detail: `The body is not valid ${coding}.` })
  }
  if (failure !== undefined) throw failure
}
