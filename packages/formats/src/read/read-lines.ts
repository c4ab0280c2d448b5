// Reads a file line by line, within a bound for each line.
import { isUtf8 } from 'node:buffer'
import type { InputFile } from '../format.ts'
import { utf8Chunks } from './utf8-chunks.ts'

/** A line that is not blank, or the reason why it can't be read. */
export interface Line {
  /** From 1. */
  number: number
  /** The line. If it has a fault, as much of it as can be shown. */
  text: string
  fault?: string
}

/**
 * The longest line, in bytes. One request has at most 10 MiB by default, and a longer thread is sent in parts, so that a line may be longer than
 * a request.
 */
export const LONGEST_RECORD_BYTES = 32 * 1024 * 1024

/** The bytes that are shown of a record that is too long. */
export const SHOWN_BYTES = 1_000

const NEWLINE = 0x0a

/** Reads the lines of a file, a list for each chunk. It keeps at most a chunk and one line in memory. Blank lines are counted and skipped. */
export async function* readLines(file: InputFile, longest = LONGEST_RECORD_BYTES): AsyncGenerator<Line[]> {
  let number = 1
  const rest = createLineRest(longest)
  const take = (block: Buffer): Line[] => {
    const lines = linesOf(block, number)
    number += countOf(block) + 1
    return lines
  }
  for await (const chunk of utf8Chunks(file)) {
    const first = chunk.indexOf(NEWLINE)
    if (first === -1) {
      rest.add(chunk)
      continue
    }
    const last = chunk.lastIndexOf(NEWLINE)
    rest.add(chunk.subarray(0, first))
    const lines = rest.isTooLong() ? [tooLong(number++, rest.take(), longest)] : take(rest.take())
    if (last > first) lines.push(...take(chunk.subarray(first + 1, last)))
    rest.add(chunk.subarray(last + 1))
    yield lines
  }
  yield rest.isTooLong() ? [tooLong(number, rest.take(), longest)] : take(rest.take())
}

/** The line that a chunk began and did not end. Only the beginning of a line that is too long is kept. */
function createLineRest(longest: number) {
  let pieces: Buffer[] = []
  let bytes = 0
  return {
    isTooLong: () => bytes > longest,
    add(piece: Buffer): void {
      if (bytes <= longest) pieces.push(piece)
      bytes += piece.length
    },
    take(): Buffer {
      const [only = Buffer.alloc(0), ...others] = pieces
      const line = others.length === 0 ? only : Buffer.concat(pieces)
      pieces = []
      bytes = 0
      return line
    },
  }
}

/** The lines of a block, which ends where its last line ends. Decoding them together costs a third. */
function linesOf(block: Buffer, firstNumber: number): Line[] {
  if (!isUtf8(block)) return splitBytes(block).flatMap((line, index) => decodeLine(line, firstNumber + index))
  const lines: Line[] = []
  let number = firstNumber
  for (const text of block.toString('utf8').split('\n')) {
    if (text.trim() !== '') lines.push({ number, text })
    number += 1
  }
  return lines
}

function decodeLine(line: Buffer, number: number): Line[] {
  const text = line.toString('utf8')
  if (!isUtf8(line)) return [{ number, text, fault: 'The line is not UTF-8.' }]
  return text.trim() === '' ? [] : [{ number, text }]
}

function splitBytes(block: Buffer): Buffer[] {
  const lines: Buffer[] = []
  for (let start = 0; start <= block.length; ) {
    const newline = block.indexOf(NEWLINE, start)
    const end = newline === -1 ? block.length : newline
    lines.push(block.subarray(start, end))
    start = end + 1
  }
  return lines
}

function countOf(block: Buffer): number {
  let count = 0
  for (let at = block.indexOf(NEWLINE); at !== -1; at = block.indexOf(NEWLINE, at + 1)) count += 1
  return count
}

function tooLong(number: number, beginning: Buffer, longest: number): Line {
  const text = beginning.subarray(0, SHOWN_BYTES).toString('utf8')
  return { number, text, fault: `The line is longer than ${longest} bytes.` }
}
