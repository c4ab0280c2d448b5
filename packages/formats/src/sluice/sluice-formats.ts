// The formats of Sluice's own threads: NDJSON, a JSON array, and the records that an import rejected.
import type { Format, InputFile, Rejected } from '../format.ts'
import { haveShape, type JsonShape } from '../read/json-beginning.ts'
import { type JsonRecord, parseText, readJson, readJsonLines, recordsAndLists } from '../read/json-records.ts'
import { isObject } from '../values/record-fields.ts'
import { createThreadReader } from './sluice-threads.ts'

/** A thread on each line, as POST /sources:batch reads them. A line can be longer than a request, up to `LONGEST_RECORD_BYTES`. */
export const ndjsonFormat = threadFormat({
  name: 'ndjson',
  description: 'NDJSON of Sluice threads, a thread a line',
  isShape: ({ root, isOneLine, members }) => root === '{' && isOneLine && members.has('quotes'),
  readRecords: readJsonLines,
})

/** An array of threads, or a single thread. */
export const jsonFormat = threadFormat({
  name: 'json',
  description: 'a JSON array of Sluice threads',
  isShape: ({ members }) => members.has('[].quotes') || members.has('quotes'),
  readRecords: (file) => readJson(file, recordsAndLists()),
})

/** Lines of `{ reason, path, line, record }` in the file that an import wrote, once they are corrected. `record` is a thread, or the text of one. */
export const rejectedFormat = threadFormat({
  name: 'rejected',
  description: 'NAME.rejected.ndjson of an earlier import, corrected',
  isShape: ({ members }) => members.has('reason') && members.has('path') && members.has('record'),
  readRecords: readOriginals,
})

interface ThreadFormat extends Pick<Format, 'name' | 'description'> {
  isShape: (shape: JsonShape) => boolean
  readRecords: (file: InputFile) => AsyncIterable<(JsonRecord | Rejected)[]>
}

/** A format whose records are whole threads. They are read in their order. */
function threadFormat({ name, description, isShape, readRecords }: ThreadFormat): Format {
  return {
    name,
    description,
    isScattered: false,
    recognises: (files, beginning) => haveShape(files, beginning, isShape),
    async *read(files, options) {
      for (const file of files) {
        const readThread = createThreadReader(options)
        for await (const records of readRecords(file)) yield records.flatMap(readThread)
      }
    },
  }
}

async function* readOriginals(file: InputFile): AsyncGenerator<(JsonRecord | Rejected)[]> {
  for await (const lines of readJsonLines(file)) yield lines.map(originalRecord)
}

/** The record that was rejected. One that could not be read was kept as text. */
function originalRecord(line: JsonRecord | Rejected): JsonRecord | Rejected {
  if (line.kind === 'rejected') return line
  const place = { ...line.place, pointer: '/record' }
  const record = isObject(line.value) ? line.value.record : undefined
  return typeof record === 'string' ? parseText(record, place) : { ...line, value: record, place }
}
