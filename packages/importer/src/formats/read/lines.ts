// Splits a file into its lines.
import type { InputFile } from '../format.ts'
import { type Bounded, createBoundedBytes, LONGEST_RECORD_BYTES } from './bounded-bytes.ts'
import { utf8Chunks } from './utf8-chunks.ts'

export interface FileLine extends Bounded {
  /** From 1. */
  line: number
}

const NEWLINE = 0x0a
export const CARRIAGE_RETURN = 0x0d

/** Returns whether lines end with only a carriage return, as old Macintosh programs wrote them. */
export function hasOldLineEnds(beginning: Buffer): boolean {
  return beginning.includes(CARRIAGE_RETURN) && !beginning.includes(NEWLINE)
}

/** Yields, for each chunk, the lines that end in it, without their line ends. */
export async function* readLines(file: InputFile, lineEnd = NEWLINE): AsyncGenerator<FileLine[]> {
  const content = createBoundedBytes(LONGEST_RECORD_BYTES)
  let line = 0
  const endLine = () => {
    line += 1
    const { bytes, isTooLong } = content.take()
    return { bytes, isTooLong, line }
  }
  for await (const chunk of utf8Chunks(file)) {
    const lines: FileLine[] = []
    let start = 0
    for (let end = chunk.indexOf(lineEnd); end !== -1; end = chunk.indexOf(lineEnd, start)) {
      content.add(chunk.subarray(start, end))
      lines.push(endLine())
      start = end + 1
    }
    content.add(chunk.subarray(start))
    yield lines
  }
  const last = endLine()
  yield last.bytes.length === 0 ? [] : [last]
}
