// Reads the rows of a CSV file. Finds the delimiter in the header.
import { pipeline, Readable } from 'node:stream'
import { CsvError, type Info, parse } from 'csv-parse'
import type { Found, FoundLists, InputFile, Noted, Place, Rejected } from '../format.ts'
import { FormatError, rejected, skipped } from '../format.ts'
import { LONGEST_RECORD_BYTES } from './bounded-bytes.ts'
import { BEGINNING_BYTES, decodeBeginning, readBeginning, utf8Chunks } from './utf8-chunks.ts'

export interface CsvRow {
  kind: 'row'
  /** The values that are not blank, by column. */
  values: ReadonlyMap<string, string>
  /** The same values in their order. A column may occur several times. */
  fields: readonly (readonly [column: string, value: string])[]
  place: Place
  /** The header and the row as they are in the file, which together are a CSV file. */
  raw: string
}

/** `crlf`: the line ends in quoted fields up to this row, which the parser counted twice. */
type ParsedRow = { record: string[]; raw: string; info: Info; crlf: number }

const DELIMITERS = [',', ';', '\t', '|']
const ROWS_TOGETHER = 500
/**
 * Matches a field that begins with the byte order mark of a joined file. Behind the mark, the
 * parser does not remove quotation marks.
 */
const MARK = /^\uFEFF(?:"(.*)"$)?/
/**
 * A field whose text begins with a quotation mark. The parser also keeps the quotation marks of a
 * field that is quoted incorrectly.
 */
const QUOTE_AS_TEXT = /"""|"\\"/

/**
 * Yields lists of rows, with the names of all columns. Rejects a row that has more or fewer fields
 * than the header, or a quotation mark that is not doubled. Skips a row that repeats the header,
 * because people join files. Throws FormatError if the file is neither UTF-8 nor UTF-16, or if a
 * row or the header is too long. Keeps at most 500 rows in memory, which together have at most one
 * row more than `LONGEST_RECORD_BYTES`.
 */
export async function* readCsvRows(file: InputFile) {
  let header: string[] | undefined
  let head = ''
  let rows: (CsvRow | Rejected | Noted)[] = []
  let characters = 0
  try {
    for await (const row of parseRows(file)) {
      if (header) rows.push(toRow(header, head, row, file.path))
      else head = headOf(row, file.path)
      header ??= withoutBlankEnd(row.record.map((name) => name.trim()))
      characters += row.raw.length
      if (rows.length < ROWS_TOGETHER && characters < LONGEST_RECORD_BYTES) continue
      yield { header, rows }
      rows = []
      characters = 0
    }
  } catch (error) {
    rows.push(lastRow(error, head, file.path))
  }
  yield { header: header ?? [], rows }
}

/** Converts rows to findings. Throws FormatError if all rows have the same fault of an option. */
export async function* foundInRows(
  file: InputFile,
  toFound: (row: CsvRow) => Found | Found[],
  lists = readCsvRows(file),
): FoundLists {
  let isFirst = true
  for await (const { rows } of lists) {
    const found = rows.flatMap((row) => (row.kind === 'row' ? toFound(row) : row))
    if (isFirst) refuseIfAlike(found, file.path)
    isFirst = false
    yield found
  }
}

/** Returns the names of a file's columns, as far as they are in its beginning. */
export function csvColumns(beginning: Buffer): string[] {
  const { header, delimiter } = dialectOf(beginning)
  return header.split(delimiter).map((name) => name.trim().replace(/^"(.*)"$/, '$1'))
}

/** Makes a function that recognises a CSV file by some of its columns. */
export function byColumns(...names: readonly string[]): (beginning: Buffer) => boolean {
  return (beginning) => {
    const columns = new Set(csvColumns(beginning))
    return names.every((name) => columns.has(name))
  }
}

async function* parseRows(file: InputFile): AsyncGenerator<ParsedRow> {
  const { header: _header, ...dialect } = dialectOf(await readBeginning(file))
  const parser = parse({
    ...dialect,
    record_delimiter: ['\r\n', '\n', '\r'],
    relax_quotes: true,
    relax_column_count: true,
    skip_empty_lines: true,
    skip_records_with_empty_values: true,
    max_record_size: LONGEST_RECORD_BYTES,
    info: true,
    raw: true,
  })
  let crlf = 0
  for await (const row of pipeline(Readable.from(checkedChunks(file)), parser, () => {})) {
    crlf += row.raw.trim().split('\r\n').length - 1
    yield { ...row, crlf }
  }
}

/**
 * Refuses chunks that are not UTF-8, because the parser would replace invalid bytes, and thereby
 * change the text.
 */
async function* checkedChunks(file: InputFile): AsyncGenerator<Buffer> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  for await (const chunk of utf8Chunks(file)) {
    try {
      decoder.decode(chunk, { stream: true })
    } catch {
      throw new FormatError(
        `${file.path} is not UTF-8. Name its encoding, such as --encoding windows-1252.`,
      )
    }
    yield chunk
  }
}

/** Returns the header, which each rejected row repeats. Throws FormatError if it is too long. */
function headOf({ raw }: ParsedRow, path: string): string {
  const bytes = Buffer.byteLength(raw)
  if (bytes <= BEGINNING_BYTES) return `${raw.trim()}\n`
  throw new FormatError(
    `The header of ${path} has ${bytes} bytes. At most ${BEGINNING_BYTES} are read.`,
  )
}

/** Matches a first line such as `sep=;`, which Excel writes and reads. It names the delimiter. */
const SEPARATOR_LINE = /^"?sep=(.)(?:(?!\s)\1)*"?\s*$/i
/**
 * Matches a quotation mark that is escaped by a backslash, as MySQL writes it. If quotation marks
 * are doubled, no text can follow here.
 */
const ESCAPED_QUOTE = /\\"[^",;\t\r\n]/

/** Matches a line. Its quoted fields may contain line ends. */
const LINE = /(?:"[^"]*"?|[^"\r\n])+/g

function dialectOf(beginning: Buffer) {
  const text = decodeBeginning(beginning)
  const [first = '', second = ''] = Array.from(text.matchAll(LINE), ([line]) => line)
  const named = SEPARATOR_LINE.exec(first)?.[1]
  const header = named === undefined ? first : second
  return {
    header,
    delimiter: named ?? delimiterOf(header),
    from_line: named === undefined ? 1 : 2,
    escape: ESCAPED_QUOTE.test(text) ? '\\' : '"',
  }
}

/** Returns the delimiter that occurs most often in the header, outside quoted fields. */
function delimiterOf(header: string): string {
  const unquoted = header.replaceAll(/"[^"]*"/g, '')
  const count = (delimiter: string) => unquoted.split(delimiter).length
  return DELIMITERS.reduce((best, each) => (count(each) > count(best) ? each : best))
}

/** Some programs put a separator at the end of lines. */
function withoutBlankEnd(fields: readonly string[]): string[] {
  return fields.slice(0, fields.findLastIndex((field) => field.trim() !== '') + 1)
}

function toRow(
  header: readonly string[],
  head: string,
  row: ParsedRow,
  path: string,
): CsvRow | Rejected | Noted {
  const { record, raw, info, crlf } = row
  const text = raw.trim()
  const place = { path, line: info.lines - crlf - (text.match(/\r\n?|\n/g)?.length ?? 0) }
  const isLonger = record.length > header.length && withoutBlankEnd(record).length > header.length
  if (isLonger || record.length < header.length) {
    const reason = `The row has ${record.length} fields, and the header has ${header.length}.`
    return rejected(reason, place, head + text)
  }
  if (repeats(record, header)) return skipped('rows that repeat the header', place)
  if (record.some((value) => value.startsWith('"')) && !QUOTE_AS_TEXT.test(text))
    return rejected('A quotation mark within quotation marks is not doubled.', place, head + text)
  return rowOf(header, record, place, head + text)
}

function repeats(record: readonly string[], header: readonly string[]): boolean {
  const mayRepeat = record[0]?.includes(header[0] ?? '') === true
  return (
    mayRepeat && header.every((name, index) => record[index]?.replace(MARK, '$1').trim() === name)
  )
}

/**
 * Returns the text of a field. Databases write `\N` for a missing value, and programs write
 * `="007"` so that Excel does not read a number.
 */
function textIn(field: string): string {
  const first = field[0]
  if (first !== '=' && first !== '\\') return field
  if (field === '\\N') return ''
  return first === '=' ? field.replace(/^="([^"]*)"$/, '$1') : field
}

/**
 * Makes a row from its fields.
 * @param raw what a rejected row shows.
 */
export function rowOf(
  header: readonly string[],
  record: readonly string[],
  place: Place,
  raw: string,
): CsvRow {
  const fields = header.flatMap((name, index) => {
    const value = textIn(record[index] ?? '')
    return value.trim() === '' ? [] : [[name, value] as const]
  })
  return { kind: 'row', values: new Map(fields), fields, place, raw }
}

/** If a quote is not closed, the rest of the file belongs to the last row. */
function lastRow(error: unknown, head: string, path: string): Rejected {
  if (!(error instanceof CsvError)) throw error
  const line = typeof error.lines === 'number' ? error.lines : undefined
  const reason = `The row can't be read: ${error.message}. Is a quote missing?`
  if (error.code === 'CSV_MAX_RECORD_SIZE') throw new FormatError(`${path}: ${reason}`)
  return rejected(reason, { path, ...(line && { line }) }, head + String(error.raw ?? ''))
}

/** Yields the rows of a file's beginning. If the beginning is cut off, leaves out its last row. */
export async function* rowsOfBeginning(
  path: string,
  beginning: Buffer,
): ReturnType<typeof readCsvRows> {
  const open = () => Readable.from([beginning])
  for await (const { header, rows } of readCsvRows({ path, open }))
    yield { header, rows: beginning.length < BEGINNING_BYTES ? rows : rows.slice(0, -1) }
}

/** Returns a table's error, or undefined when its first record has been read. */
export async function faultOfRows(
  lists: AsyncIterable<readonly Found[]>,
): Promise<string | undefined> {
  try {
    for await (const found of lists)
      if (found.some(({ kind }) => kind === 'piece' || kind === 'rejected')) return undefined
  } catch (error) {
    if (error instanceof FormatError) return error.message
    throw error
  }
  return undefined
}

/** If a date's order is not given, the date may be read in these orders. */
const ORDERS = ['D/M/Y', 'M/D/Y']

/**
 * Throws FormatError if all rows have the same fault and an option would correct it, because nobody
 * needs the same error for each row.
 */
export function refuseIfAlike(found: readonly Found[], path: string): void {
  const reasons = found.map((one) => (one.kind === 'rejected' ? one.reason : ''))
  const [first = ''] = reasons
  const [fault = ''] = first.split(': ')
  if (!fault.includes('--') || !reasons.every((reason) => reason.startsWith(fault))) return
  const [order = 'ORDER', other] = ORDERS.filter((each) =>
    reasons.every((reason) => reason.includes(each)),
  )
  throw new FormatError(`${path}: ${first}`, [
    `--date-format ${other === undefined ? order : 'ORDER'}`,
  ])
}
