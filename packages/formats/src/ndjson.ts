// NDJSON of Sluice threads: a thread on each line, as POST /sources:batch takes them.
import type { Format } from './format.ts'
import { haveShape } from './json-beginning.ts'
import { readJsonLines } from './json-records.ts'
import { createThreadReader } from './sluice-threads.ts'

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
      for await (const lines of readJsonLines(file)) yield lines.flatMap(readThread)
    }
  },
}
