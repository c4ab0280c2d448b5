// A JSON array of Sluice threads, or a single thread.
import type { Format } from './format.ts'
import { haveShape } from './json-beginning.ts'
import { readJsonRecords } from './json-records.ts'
import { createThreadReader } from './sluice-threads.ts'

/** Reads threads in their order. */
export const jsonFormat: Format = {
  name: 'json',
  description: 'a JSON array of Sluice threads',
  isScattered: false,
  recognises: (files, beginning) =>
    haveShape(files, beginning, ({ members }) => members.has('[].quotes') || members.has('quotes')),
  async *read(files, options) {
    for (const file of files) {
      const readThread = createThreadReader(options)
      for await (const records of readJsonRecords(file)) yield records.flatMap(readThread)
    }
  },
}
