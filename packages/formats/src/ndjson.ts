// NDJSON of Sluice threads: a thread on each line, as POST /sources:batch takes them.
import type { Format, Found } from './format.ts'
import { haveShape } from './json-beginning.ts'
import { type Line, readLines, rejectLine } from './read-lines.ts'
import { createThreadReader, type ReadThread } from './sluice-threads.ts'

/** Reads threads line by line, in their order. A line can be longer than a request, up to `LONGEST_RECORD_BYTES`. */
export const ndjsonFormat: Format = {
  name: 'ndjson',
  description: 'NDJSON of Sluice threads, a thread a line',
  isScattered: false,
  recognises: (files, beginning) =>
    haveShape(files, beginning, ({ root, isOneLine, members }) => root === '{' && isOneLine && members.has('quotes')),
  async *read(files, options) {
    for (const file of files) {
      const readThread = createThreadReader(options)
      for await (const lines of readLines(file)) yield lines.flatMap((line) => readLine(line, file.path, readThread))
    }
  },
}

function readLine(line: Line, path: string, readThread: ReadThread): Found[] {
  if (line.fault !== undefined) return [rejectLine(line, line.fault, path)]
  let record: unknown
  try {
    record = JSON.parse(line.text)
  } catch (error) {
    return [rejectLine(line, `The line is not JSON: ${error instanceof Error ? error.message : error}.`, path)]
  }
  return readThread(record, { path, line: line.number }, record)
}
