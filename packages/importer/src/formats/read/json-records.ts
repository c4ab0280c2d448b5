// Reads the records of a JSON file of any size: chosen values of its text, or each line as NDJSON.
import { isUtf8 } from 'node:buffer'
import type { Format, Found, InputFile, Place, ReadFile, Rejected } from '../format.ts'
import { eachFile, rejected, skipped } from '../format.ts'
import { createBoundedBytes, LONGEST_RECORD_BYTES } from './bounded-bytes.ts'
import { JsonScanner, type ScannedValue } from './json-scanner.ts'
import { utf8Chunks } from './utf8-chunks.ts'

export interface JsonRecord {
  kind: 'record'
  /** The path that chose the record. */
  path: string
  value: unknown
  place: Place
}

/** The paths of the elements of a root list, of those of these lists in a root object, and of any other root itself. */
export function recordsAndLists(...lists: readonly string[]): readonly string[] {
  return ['', '/*', ...lists.map((list) => `/${list}/*`)]
}

/** Reads the JSON files of an export, one after another. The others are counted. */
export function eachJsonFile(read: ReadFile): Format['read'] {
  return eachFile(async function* (file, options) {
    if (file.path.endsWith('.json')) yield* read(file, options)
    else yield [skipped('files without messages, such as uploads', { path: file.path })]
  })
}

/**
 * Makes findings of records. A record that could not be read stays rejected.
 *
 * @param contextOf what a rejected record needs from the rest of its file.
 */
export async function* foundIn(
  lists: AsyncIterable<readonly (JsonRecord | Rejected)[]>,
  toFound: (record: JsonRecord) => Found | readonly Found[],
  contextOf?: (record: unknown) => object,
): AsyncGenerator<readonly Found[]> {
  for await (const list of lists) {
    const found = list.flatMap((record) => (record.kind === 'rejected' ? record : toFound(record)))
    yield contextOf === undefined
      ? found
      : found.map((one) => (one.kind === 'rejected' ? { ...one, context: contextOf(one.record) } : one))
  }
}

/**
 * Reads the values that the paths choose: see `JsonScanner`. Several roots may follow each other. A value that is no
 * JSON, or too long, is rejected, and the next one is read. Memory: a chunk and one value.
 */
export async function* readJson(file: InputFile, paths: readonly string[]): AsyncGenerator<(JsonRecord | Rejected)[]> {
  const scanner = new JsonScanner(paths)
  const toRecord = (scanned: ScannedValue) => parseValue(scanned, file.path)
  for await (const chunk of utf8Chunks(file)) yield scanner.push(chunk).map(toRecord)
  const last = scanner.end().map(toRecord)
  const isCut = !scanner.isComplete() && last.length === 0
  yield isCut ? [rejected('The file ends before its JSON does.', { path: file.path }, '')] : last
}

const [NEWLINE, SPACE] = [0x0a, 0x20]

/**
 * Reads each line as a record: twice as fast as `readJson`, and a line that is no JSON harms no other. Blank lines are
 * skipped. Memory: a chunk and a line.
 */
export async function* readJsonLines(file: InputFile): AsyncGenerator<(JsonRecord | Rejected)[]> {
  const content = createBoundedBytes(LONGEST_RECORD_BYTES)
  let line = 0
  const endLine = () => {
    const value = content.take()
    line += 1
    const isBlank = !value.bytes.some((byte) => byte > SPACE)
    return isBlank ? [] : [parseValue({ path: '', pointer: '', line, ...value }, file.path)]
  }
  for await (const chunk of utf8Chunks(file)) {
    const records: (JsonRecord | Rejected)[] = []
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      content.add(chunk.subarray(start, end))
      records.push(...endLine())
      start = end + 1
    }
    content.add(chunk.subarray(start))
    yield records
  }
  yield endLine()
}

/** The bytes that are shown of a record that is too long. */
const SHOWN_BYTES = 1_000

function parseValue({ path, pointer, line, bytes, isTooLong }: ScannedValue, file: string): JsonRecord | Rejected {
  const place: Place = { path: file, line, ...(pointer && { pointer }) }
  const text = bytes.toString('utf8', 0, isTooLong ? SHOWN_BYTES : bytes.length)
  if (isTooLong) return rejected(`The record is longer than ${LONGEST_RECORD_BYTES} bytes.`, place, text)
  if (!isUtf8(bytes)) return rejected('The record is not UTF-8 (see --encoding).', place, text)
  try {
    return { kind: 'record', path, value: JSON.parse(text), place }
  } catch (error) {
    return rejected(`The record is not JSON: ${error instanceof Error ? error.message : error}.`, place, text)
  }
}
