// The records that an import rejected, in the file that it wrote for them, once they are corrected.
import type { Format, Rejected } from './format.ts'
import { haveShape } from './json-beginning.ts'
import { type JsonRecord, parseText, readJsonLines } from './json-records.ts'
import { isObject } from './record-fields.ts'
import { createThreadReader } from './sluice-threads.ts'

/** Reads lines of `{ reason, path, line, record }`. `record` is a thread, or the text of one. */
export const rejectedFormat: Format = {
  name: 'rejected',
  description: 'NAME.rejected.ndjson of an earlier import, corrected',
  isScattered: false,
  recognises: (files, beginning) =>
    haveShape(files, beginning, ({ members }) => members.has('reason') && members.has('path') && members.has('record')),
  async *read(files, options) {
    for (const file of files) {
      const readThread = createThreadReader(options)
      for await (const lines of readJsonLines(file)) yield lines.map(originalRecord).flatMap(readThread)
    }
  },
}

/** The record that was rejected. One that could not be read was kept as text. */
function originalRecord(line: JsonRecord | Rejected): JsonRecord | Rejected {
  if (line.kind === 'rejected') return line
  const place = { ...line.place, pointer: '/record' }
  const record = isObject(line.value) ? line.value.record : undefined
  return typeof record === 'string' ? parseText(record, '', place) : { ...line, value: record, place }
}
