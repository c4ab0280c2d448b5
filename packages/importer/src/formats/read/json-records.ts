// Reads the records of a JSON file of any size: selected values of its text, or its lines (NDJSON).
import { isUtf8 } from 'node:buffer'
import type { AnswerPage, Found, FoundLists, InputFile, Piece, Place, Rejected } from '../format.ts'
import { orRejected, rejected } from '../format.ts'
import { nodesIn } from '../values/graphql.ts'
import { asObject, type JsonObject } from '../values/record-fields.ts'
import { LONGEST_RECORD_BYTES } from './bounded-bytes.ts'
import { jsonShape } from './json-beginning.ts'
import { JsonScanner, type ScannedValue } from './json-scanner.ts'
import { type FileLine, readLines } from './lines.ts'
import { pageOf } from './pages.ts'
import { readBeginning, utf8Chunks } from './utf8-chunks.ts'

export interface JsonRecord {
  kind: 'record'
  path: string
  value: unknown
  place: Place
}

type Records<Other = never> = AsyncGenerator<readonly (JsonRecord | Rejected | Other)[]>
type ToFound = (record: JsonRecord) => Found | readonly Found[]

/**
 * Returns paths that select the elements of a root list, the elements of these lists in a root
 * object, or any other root itself.
 */
export function recordsAndLists(...lists: readonly string[]): readonly string[] {
  return ['', '/*', ...lists.map((list) => `/${list}/*`)]
}

/**
 * Converts records to findings.
 * @param contextOf returns other data of the file that a rejected record needs.
 */
export async function* foundIn(
  lists: AsyncGenerator<readonly (JsonRecord | Exclude<Found, Piece>)[]>,
  toFound: ToFound,
  contextOf?: (record: unknown) => object,
): FoundLists {
  const addContext = (one: Found) =>
    contextOf !== undefined && one.kind === 'rejected'
      ? { ...one, context: contextOf(one.record) }
      : one
  for await (const list of lists)
    yield list
      .flatMap((record) => (record.kind === 'record' ? orTooDeep(record, toFound) : record))
      .map(addContext)
}

/** Rejects a record that nests deeper than the stack allows, such as answers in answers. */
function orTooDeep(record: JsonRecord, toFound: ToFound): Found | readonly Found[] {
  try {
    return toFound(record)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return rejected('The record nests too deep.', record.place, record.value)
  }
}

/**
 * Reads the values that the paths select (see `JsonScanner`). After a value that it rejects,
 * continues with the next one.
 * @param prepare changes the JSON of a value before it is parsed.
 */
export function readJsonFile(
  file: InputFile,
  paths: readonly string[],
  prepare?: Prepare,
): Records<AnswerPage> {
  return orRejected(file, scanJson(file, paths, prepare))
}

type Prepare = (json: string) => string

async function* scanJson(
  file: InputFile,
  paths: readonly string[],
  prepare?: Prepare,
): Records<AnswerPage> {
  const scanner = new JsonScanner(paths)
  const toRecord = (scanned: ScannedValue) => {
    const record = parseValue(scanned, file.path, prepare)
    return scanned.path === '' ? withPage(record, scanned.list) : record
  }
  for await (const chunk of utf8Chunks(file)) yield scanner.push(chunk).flatMap(toRecord)
  const last = scanner.end().flatMap(toRecord)
  const isCut = !scanner.isComplete() && last.length === 0
  yield isCut ? [rejected('The file ends before its JSON does.', { path: file.path }, '')] : last
}

/** What remains of a root whose lists were read only shows whether it is a page. */
function withPage(record: JsonRecord | Rejected, list: ScannedValue['list']) {
  const value = record.kind === 'record' ? asObject(record.value) : undefined
  if (list) return pageOf(value, list.path, list.elements, record.place) ?? []
  const page =
    asObject(value?.data ?? value?.issues) && pageOf(value, '', nodesIn(value).length, record.place)
  return page ? [record, page] : record
}

/**
 * Returns fields of the root object that are behind its list: Facebook writes them there, as does a
 * program that sorts names. If the beginning of the file has all of them in front of the list, the
 * file is not read a second time.
 */
export async function fieldsBehind(
  file: InputFile,
  list: string,
  names: readonly string[],
): Promise<JsonObject> {
  const members = [...jsonShape(await readBeginning(file)).members]
  const before = members.slice(0, members.indexOf(list))
  if (!members.includes(list) || names.every((name) => before.includes(name))) return {}
  const fields: Record<string, unknown> = {}
  for await (const records of readJsonFile(
    file,
    names.map((name) => `/${name}`),
  ))
    for (const record of records)
      if (record.kind === 'record') fields[record.path.slice(1)] = record.value
  return fields
}

const SPACE = 0x20

/** Reads lines, twice as fast as `readJsonFile`. If one is not JSON, the others are still read. */
export function readJsonLines(file: InputFile): Records {
  return orRejected(file, parseLines(file))
}

async function* parseLines(file: InputFile): Records {
  for await (const lines of readLines(file))
    yield lines.flatMap((line) => parseLine(line, file.path))
}

function parseLine(line: FileLine, path: string): (JsonRecord | Rejected)[] {
  const isBlank = !line.bytes.some((byte) => byte > SPACE)
  if (isBlank) return []
  const record = parseValue({ path: '', pointer: '', ...line }, path)
  return record.kind === 'rejected' ? parseRoots(line, path, record) : [record]
}

/** A program may have written no line ends. If that fails, the whole line is rejected. */
function parseRoots({ bytes, isTooLong, line }: FileLine, path: string, whole: Rejected) {
  const scanner = new JsonScanner([''])
  const roots = isTooLong ? [] : [...scanner.push(bytes), ...scanner.end()]
  return roots.length > 1 ? roots.map((root) => parseValue({ ...root, line }, path)) : [whole]
}

/** If a record is too long, only its first bytes are shown, this many. */
const SHOWN_BYTES = 1_000

function parseValue(
  { path, pointer, line, bytes, isTooLong }: ScannedValue,
  file: string,
  prepare: Prepare = (json) => json,
): JsonRecord | Rejected {
  const place: Place = { path: file, line, ...(pointer && { pointer }) }
  const text = bytes.toString('utf8', 0, isTooLong ? SHOWN_BYTES : bytes.length)
  if (isTooLong)
    return rejected(`The record is longer than ${LONGEST_RECORD_BYTES} bytes.`, place, text)
  if (!isUtf8(bytes)) return rejected('The record is not UTF-8 (see --encoding).', place, text)
  try {
    return { kind: 'record', path, value: JSON.parse(prepare(text)), place }
  } catch (error) {
    return rejected(
      `The record is not JSON: ${error instanceof Error ? error.message : error}.`,
      place,
      text,
    )
  }
}
