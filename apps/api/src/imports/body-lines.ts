// Reads an import's body line by line, as its chunks arrive.
import type { Readable } from 'node:stream'
import { createGrowingBuffer } from '../body/arriving-body.ts'
import { bodyChunks, type Coding } from '../body/body-chunks.ts'

/** One line of a body. Lines count from 1, blank lines included. A line that is too long is skipped. */
export interface BodyLine {
  number: number
  text: Buffer | 'too long'
}

/** The bounds of a body, in bytes. */
interface LineBounds {
  /** The whole body, as sent and inflated. */
  importBytes: number
  lineBytes: number
  /** Aborts when nobody waits for the rest. Its reason is the error to throw. */
  stop: AbortSignal
  /** Receives the memory of a long line before it is allocated, and may throw to refuse it. */
  ensure(bytes: number): void
}

const NEWLINE = 0x0a

/**
 * Yields the lines that each chunk of a body completes. Keeps at most a chunk and one line in memory. Skips white space
 * before a line, and lines of white space, of any length.
 *
 * @throws {ProblemError} if the body is too large or does not inflate, or the grace time is over.
 * @throws {CallerGoneError}
 */
export async function* bodyLines(
  body: Readable,
  coding: Coding,
  { importBytes, lineBytes, stop, ensure }: LineBounds,
): AsyncGenerator<BodyLine[]> {
  const pieces = createGrowingBuffer({ expected: 0, most: lineBytes }, ensure)
  let length = 0
  let number = 1

  function add(piece: Buffer): void {
    length += piece.length
    if (length > lineBytes) pieces.take()
    else if (piece.length > 0) pieces.add(piece)
  }

  function complete(): BodyLine[] {
    const text = length > lineBytes ? 'too long' : pieces.take()
    const lines = length === 0 ? [] : [{ number, text } as const]
    length = 0
    number += 1
    return lines
  }

  for await (const chunk of bodyChunks(body, coding, { bytes: importBytes, limit: 'importBytes', stop })) {
    const lines: BodyLine[] = []
    for (let start = 0; start < chunk.length; ) {
      if (length === 0) {
        const blanks = blanksAt(chunk, start)
        start += blanks.length
        number += blanks.newlines
      }
      const end = chunk.indexOf(NEWLINE, start)
      add(chunk.subarray(start, end === -1 ? undefined : end))
      if (end === -1) break
      lines.push(...complete())
      start = end + 1
    }
    yield lines
  }
  yield complete()
}

const SPACE = 0x20
const TAB = 0x09
const CARRIAGE_RETURN = 0x0d

/** Measures the white space of ASCII from `start` on: spaces, and all characters from tab to carriage return. */
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
