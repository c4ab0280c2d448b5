// Reads the records of a JSON file of any size: chosen values of its text, or each line as NDJSON.
import { isUtf8 } from 'node:buffer'
import type { InputFile, Place, Rejected } from '../format.ts'
import { JsonScanner, type ScannedValue } from './json-scanner.ts'
import { LONGEST_RECORD_BYTES, readLines, SHOWN_BYTES } from './read-lines.ts'
import { utf8Chunks } from './utf8-chunks.ts'

/** A record that is JSON. */
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

/**
 * Reads the values that the paths choose, as `JsonScanner` describes them. Several roots may follow each other. A value that is no JSON, or longer than
 * `longest` bytes, is rejected, and the next one is read. Memory: a chunk and one value.
 */
export async function* readJson(
  file: InputFile,
  paths: readonly string[],
  longest = LONGEST_RECORD_BYTES,
): AsyncGenerator<(JsonRecord | Rejected)[]> {
  const scanner = new JsonScanner(paths, longest)
  const toRecord = (scanned: ScannedValue) => parseValue(scanned, file.path, longest)
  for await (const chunk of utf8Chunks(file)) yield scanner.push(chunk).map(toRecord)
  const last = scanner.end().map(toRecord)
  const isCut = !scanner.isComplete() && last.length === 0
  const end: Rejected = {
    kind: 'rejected',
    reason: 'The file ends before its JSON does.',
    place: { path: file.path },
    record: '',
  }
  yield isCut ? [end] : last
}

/** Reads each line as a record: twice as fast as `readJson`, and a line that is no JSON harms no other. */
export async function* readJsonLines(file: InputFile): AsyncGenerator<(JsonRecord | Rejected)[]> {
  for await (const lines of readLines(file)) {
    yield lines.map(({ number, text, fault }) => {
      const place: Place = { path: file.path, line: number }
      return fault === undefined ? parseText(text, place) : { kind: 'rejected', reason: fault, place, record: text }
    })
  }
}

function parseValue({ path, pointer, line, bytes, isTooLong }: ScannedValue, file: string, longest: number) {
  const place: Place = { path: file, line, ...(pointer && { pointer }) }
  const reject = (reason: string, text: string): Rejected => ({ kind: 'rejected', reason, place, record: text })
  if (isTooLong) return reject(`The record is longer than ${longest} bytes.`, bytes.toString('utf8', 0, SHOWN_BYTES))
  const text = bytes.toString('utf8')
  return isUtf8(bytes) ? parseText(text, place, path) : reject('The record is not UTF-8.', text)
}

/** Parses the text of a record. */
export function parseText(text: string, place: Place, path = ''): JsonRecord | Rejected {
  try {
    return { kind: 'record', path, value: JSON.parse(text), place }
  } catch (error) {
    const reason = `The record is not JSON: ${error instanceof Error ? error.message : error}.`
    return { kind: 'rejected', reason, place, record: text }
  }
}
