// Splits a file into its lines.
import type { InputFile } from '../format.ts'
import { type Bounded, createBoundedBytes, LONGEST_RECORD_BYTES } from './bounded-bytes.ts'
import { utf8Chunks } from './utf8-chunks.ts'

export interface FileLine extends Bounded {
  /** From 1. */
  line: number
}

const NEWLINE = 0x0a

/** Yields, for each chunk, the lines that end in it, without their line ends. */
export async function* readLines(file: InputFile): AsyncGenerator<FileLine[]> {
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
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
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
