// Reads an import's body line by line: chunks as they arrive, inflated within bounds, then split into lines.
import { once } from 'node:events'
import { finished, type Readable, type Transform } from 'node:stream'
import { type Coding, type CompressedCoding, createInflater } from '../content-coding.ts'
import { bodyTooLarge, bodyUnreadable, CallerGoneError, serviceStopping } from '../problems.ts'

/** One line of a body, or the mark of a line that was skipped because it is too long. */
export type BodyLine = Buffer | 'too long'

/** The lines that one chunk of the body completes. The next chunk may take its time. */
export type Lines = BodyLine[]

/** The bounds of a body, in bytes: all of it, as sent and inflated, and one line. */
interface BodyBounds {
  importBytes: number
  bodyBytes: number
}

const NEWLINE = 0x0a

/**
 * Reads lines as their bytes arrive. It keeps at most a chunk and one line in memory. Lines of white space, of any length,
 * are skipped.
 *
 * @throws {ProblemError} if the body is too large, does not inflate, or the grace time is over. The lines before were yielded.
 * @throws {CallerGoneError}
 */
export async function* bodyLines(
  body: Readable,
  coding: Coding,
  { importBytes, bodyBytes }: BodyBounds,
  graceOver: AbortSignal,
): AsyncGenerator<Lines> {
  const line = createLine(bodyBytes)
  for await (const chunk of inflatedChunks(body, coding, importBytes, graceOver)) {
    const lines: Lines = []
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      line.add(chunk.subarray(start, end))
      lines.push(...line.complete())
      start = end + 1
    }
    if (start < chunk.length) line.add(chunk.subarray(start))
    yield lines
  }
  yield line.complete()
}

/** Joins the pieces of a line. */
function createLine(maxBytes: number) {
  let pieces: Buffer[] = []
  let bytes = 0
  let blank = true
  return {
    add(piece: Buffer): void {
      bytes += piece.length
      blank &&= isBlank(piece)
      if (bytes > maxBytes) pieces = []
      else pieces.push(piece)
    },
    /** Returns the line, unless it is blank, and begins the next. */
    complete(): Lines {
      const lines: Lines = blank ? [] : [bytes > maxBytes ? 'too long' : Buffer.concat(pieces)]
      pieces = []
      bytes = 0
      blank = true
      return lines
    },
  }
}

const SPACE = 0x20
const TAB = 0x09
const CARRIAGE_RETURN = 0x0d

/** White space of ASCII: tab, the vertical ones, and the space. */
function isBlank(piece: Buffer): boolean {
  return piece.every((byte) => byte === SPACE || (byte >= TAB && byte <= CARRIAGE_RETURN))
}

async function* inflatedChunks(
  body: Readable,
  coding: Coding,
  bytes: number,
  graceOver: AbortSignal,
): AsyncGenerator<Buffer> {
  const ended = new AbortController()
  const sent = bounded(bodyChunks(body, AbortSignal.any([graceOver, ended.signal])), bytes)
  try {
    yield* coding === 'identity' ? sent : bounded(inflate(sent, coding, ended.signal), bytes)
  } finally {
    ended.abort()
  }
}

async function* bounded(chunks: AsyncIterable<Buffer>, bytes: number): AsyncGenerator<Buffer> {
  let size = 0
  for await (const chunk of chunks) {
    size += chunk.length
    if (size > bytes) throw bodyTooLarge(bytes, 'importBytes')
    yield chunk
  }
}

async function* inflate(
  chunks: AsyncGenerator<Buffer>,
  coding: CompressedCoding,
  ended: AbortSignal,
): AsyncGenerator<Buffer> {
  const first = await chunks.next()
  if (first.done) return
  const inflater = createInflater(coding, first.value)
  let failure: unknown
  const feeding = feed(inflater, first.value, chunks, ended).catch((error) => {
    failure = error
    inflater.destroy()
  })
  try {
    yield* inflater
  } catch {
    throw failure ?? bodyUnreadable('not_decodable', `The body is not valid ${coding}.`)
  }
  await feeding
  if (failure !== undefined) throw failure
}

async function feed(
  inflater: Transform,
  first: Buffer,
  rest: AsyncIterable<Buffer>,
  ended: AbortSignal,
): Promise<void> {
  const write = async (chunk: Buffer) => {
    if (!inflater.write(chunk)) await once(inflater, 'drain', { signal: ended })
  }
  await write(first)
  for await (const chunk of rest) await write(chunk)
  inflater.end()
}

/**
 * Yields a body's chunks as they arrive. Afterwards the body is still open and has no listeners, so that the rest can be
 * drained. Iterating over the body itself would destroy it, and its connection, when its reader throws.
 */
async function* bodyChunks(body: Readable, stop: AbortSignal): AsyncGenerator<Buffer> {
  let onChange = () => {}
  let end: { error?: unknown } | undefined
  const wake = () => onChange()
  const unwatch = finished(body, { writable: false }, (error) => {
    end = error ? { error } : {}
    wake()
  })
  body.on('readable', wake)
  stop.addEventListener('abort', wake)
  try {
    for (;;) {
      if (stop.aborted) throw serviceStopping()
      const chunk: Buffer | null = body.destroyed ? null : body.read()
      if (chunk !== null) yield chunk
      else if (end === undefined) await new Promise<void>((resolve) => (onChange = resolve))
      else if (end.error !== undefined) throw new CallerGoneError('the caller hung up', { cause: end.error })
      else return
    }
  } finally {
    stop.removeEventListener('abort', wake)
    body.off('readable', wake)
    unwatch()
  }
}
