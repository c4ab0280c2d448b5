// Reads an import's body line by line, as its chunks arrive.
import type { Readable } from 'node:stream'
import { createGrowingBuffer } from '../body/arriving-body.ts'
import { bodyChunks, type Coding } from '../body/body-chunks.ts'

/** One line of a body, or the mark of a line that was skipped because it is too long. Lines count from 1, blank ones included. */
export type BodyLine = { number: number; text: Buffer | 'too long' }

/** The lines that one chunk of the body completes. The next chunk may take its time. */
export type Lines = BodyLine[]

/** The bounds of a body. */
interface LineBounds {
  /** All of it, as sent and inflated, in bytes. */
  importBytes: number
  /** One line, in bytes. */
  bodyBytes: number
  /** Aborts when nobody waits for the rest. Its reason is the error to throw. */
  stop: AbortSignal
  /** Receives the memory of a long line before it is taken, and may throw to refuse it. */
  ensure(bytes: number): void
}

const NEWLINE = 0x0a

/**
 * Reads lines as their bytes arrive. It keeps at most a chunk and one line in memory. White space before a line and lines of
 * white space, of any length, are skipped.
 *
 * @throws {ProblemError} if the body is too large, does not inflate, or the grace time is over. The lines before were yielded.
 * @throws {CallerGoneError}
 */
export async function* bodyLines(
  body: Readable,
  coding: Coding,
  { importBytes, bodyBytes, stop, ensure }: LineBounds,
): AsyncGenerator<Lines> {
  const line = createLine(bodyBytes, ensure)
  const bounds = { bytes: importBytes, limit: 'importBytes', stop } as const
  let number = 1
  for await (const chunk of bodyChunks(body, coding, bounds)) {
    const lines: Lines = []
    for (let start = 0; start < chunk.length; ) {
      if (line.isEmpty()) {
        const blanks = blanksAt(chunk, start)
        start += blanks.length
        number += blanks.newlines
      }
      const end = chunk.indexOf(NEWLINE, start)
      line.add(chunk.subarray(start, end === -1 ? undefined : end))
      if (end === -1) break
      lines.push(...line.complete(number))
      number += 1
      start = end + 1
    }
    yield lines
  }
  yield line.complete(number)
}

/** Joins the pieces of a line. */
function createLine(maxBytes: number, ensure: (bytes: number) => void) {
  const pieces = createGrowingBuffer({ expected: 0, most: maxBytes }, ensure)
  let bytes = 0
  return {
    isEmpty: () => bytes === 0,
    add(piece: Buffer): void {
      if (piece.length === 0) return
      bytes += piece.length
      if (bytes > maxBytes) pieces.take()
      else pieces.add(piece)
    },
    /** Returns the line, unless it is empty, and begins the next. */
    complete(number: number): Lines {
      if (bytes === 0) return []
      const text = bytes > maxBytes ? 'too long' : pieces.take()
      bytes = 0
      return [{ number, text }]
    },
  }
}

const SPACE = 0x20
const TAB = 0x09
const CARRIAGE_RETURN = 0x0d

/** The white space of ASCII at a place: tab, newline, the other vertical ones, and the space. */
function blanksAt(chunk: Buffer, start: number): { length: number; newlines: number } {
  let newlines = 0
  let at = start
  for (; at < chunk.length; at++) {
    const byte = chunk[at] ?? 0
    if (byte !== SPACE && (byte < TAB || byte > CARRIAGE_RETURN)) break
    if (byte === NEWLINE) newlines += 1
  }
  return { length: at - start, newlines }
}
