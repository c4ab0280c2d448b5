// Reads a file line by line, within a bound for each line.
import type { InputFile } from '../format.ts'
import type { ScannedValue } from './json-scanner.ts'
import { utf8Chunks } from './utf8-chunks.ts'

/** In bytes. A request has at most 10 MiB by default, and a longer thread is sent in parts. */
export const LONGEST_RECORD_BYTES = 32 * 1024 * 1024

const [NEWLINE, SPACE] = [0x0a, 0x20]

/** Reads the lines of a file, a list for each chunk. Blank lines are skipped. Memory: a chunk and a line. */
export async function* readLines(file: InputFile, longest = LONGEST_RECORD_BYTES): AsyncGenerator<ScannedValue[]> {
  let line = 0
  /** Of the line that has not ended. Of one that is too long, only the beginning is kept. */
  let pieces: Buffer[] = []
  let bytes = 0

  function add(piece: Buffer): void {
    if (bytes <= longest) pieces.push(piece)
    bytes += piece.length
  }

  function endLine(): ScannedValue[] {
    const [only = Buffer.alloc(0)] = pieces
    const whole = pieces.length > 1 ? Buffer.concat(pieces) : only
    const isTooLong = bytes > longest
    line += 1
    pieces = []
    bytes = 0
    return whole.some((byte) => byte > SPACE) ? [{ path: '', pointer: '', line, bytes: whole, isTooLong }] : []
  }

  for await (const chunk of utf8Chunks(file)) {
    const lines: ScannedValue[] = []
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      add(chunk.subarray(start, end))
      lines.push(...endLine())
      start = end + 1
    }
    add(chunk.subarray(start))
    yield lines
  }
  yield endLine()
}
