// Reads a file line by line, within a bound for each line.
import { isUtf8 } from 'node:buffer'
import type { InputFile } from '../format.ts'
import { utf8Chunks } from './utf8-chunks.ts'

interface Line {
  /** From 1. */
  number: number
  /** The line. If it has a fault, as much of it as can be shown. */
  text: string
  fault?: string
}

/** In bytes. A request has at most 10 MiB by default, and a longer thread is sent in parts. */
export const LONGEST_RECORD_BYTES = 32 * 1024 * 1024

/** The bytes that are shown of a record that is too long. */
export const SHOWN_BYTES = 1_000

const NEWLINE = 0x0a

/** Reads the lines of a file, a list for each chunk. Blank lines are skipped. Memory: a chunk and a line. */
export async function* readLines(file: InputFile, longest = LONGEST_RECORD_BYTES): AsyncGenerator<Line[]> {
  let number = 0
  /** Of the line that has not ended. Of one that is too long, only the beginning is kept. */
  let pieces: Buffer[] = []
  let bytes = 0

  function add(piece: Buffer): void {
    if (bytes <= longest) pieces.push(piece)
    bytes += piece.length
  }

  function endLine(): Line[] {
    const [only = Buffer.alloc(0)] = pieces
    const line = pieces.length > 1 ? Buffer.concat(pieces) : only
    const isTooLong = bytes > longest
    number += 1
    pieces = []
    bytes = 0
    const text = line.toString('utf8', 0, isTooLong ? SHOWN_BYTES : line.length)
    if (isTooLong) return [{ number, text, fault: `The line is longer than ${longest} bytes.` }]
    if (!isUtf8(line)) return [{ number, text, fault: 'The line is not UTF-8 (see --encoding).' }]
    return text.trim() === '' ? [] : [{ number, text }]
  }

  for await (const chunk of utf8Chunks(file)) {
    const lines: Line[] = []
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
