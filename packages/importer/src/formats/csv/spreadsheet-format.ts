// Reads workbooks of Excel and OpenDocument. Each sheet is read like a CSV file.
import {
  eachFile,
  type Format,
  FormatError,
  type FormatOptions,
  type FoundLists,
  type Place,
  type Rejected,
  rejected,
  skipped,
} from '../format.ts'
import { LONGEST_RECORD_BYTES } from '../read/bounded-bytes.ts'
import { type CsvRow, rowOf } from '../read/csv-rows.ts'
import { BEGINNING_BYTES } from '../read/utf8-chunks.ts'
import { csvFormat, faultOfTables, readTable } from './csv-format.ts'
import { readOds } from './ods.ts'
import { isXlsx, readXlsx } from './xlsx.ts'
import { openWorkbook, type Sheet, type SheetRow, SheetTooLarge } from './xml-entry.ts'

const ZIP = Buffer.from('PK\x03\x04')
const ODS = 'mimetypeapplication/vnd.oasis.opendocument.spreadsheet'

/** Reads the visible sheets. Keeps the compressed file and its shared texts in memory. */
export const spreadsheetFormat: Format = {
  name: 'spreadsheet',
  title: 'spreadsheets',
  description: 'workbooks (.xlsx, .ods), each sheet as CSV',
  sourceIs: 'the same as for CSV',
  options: csvFormat.options ?? [],
  recognises: ({ path }, bytes) => {
    if (!bytes.subarray(0, ZIP.length).equals(ZIP)) return false
    // Binary workbooks, which have `xl/workbook.bin`, are not supported.
    const isXml = bytes.includes('xl/workbook') && !bytes.includes('xl/workbook.bin')
    return /\.(xls[xm]|ods)$/i.test(path) || bytes.includes(ODS) || isXml
  },
  faultOf: (file, _, options) => faultOfTables(spreadsheetFormat.read([file], options), options),
  read: eachFile(async function* (file, options): FoundLists {
    const workbook = await openWorkbook(file)
    const sheets = isXlsx(workbook) ? await readXlsx(workbook) : await readOds(workbook)
    let problem: unknown
    let isRead = false
    for (const sheet of sheets) {
      const place = { path: file.path, ...(sheets.length > 1 && { pointer: `/${sheet.name}` }) }
      if (sheet.isHidden) yield [skipped('sheets that are hidden', place)]
      else {
        const error = yield* readSheet(sheet, place, options)
        isRead ||= error === undefined
        problem ??= error
        if (error !== undefined)
          yield [skipped(`sheets that are no tables of messages: ${sheet.name}`, place)]
      }
    }
    // A workbook often has sheets with notes and sums besides its table. But at least one sheet
    // must be a table.
    if (!isRead)
      throw (
        problem ??
        new FormatError(
          `${file.path} has no sheet with rows. If it has a password, save it without.`,
        )
      )
  }),
}

/** Reads a sheet. If the sheet lacks a column that it needs, returns the error. */
async function* readSheet(sheet: Sheet, place: Place, options: FormatOptions) {
  const path = `${place.path}${place.pointer ?? ''}`
  let isRead = false
  try {
    for await (const found of readTable(path, tablesOf(sheet, place), options)) {
      isRead = true
      // A rejected row is written as CSV.
      yield found.map((one) => (one.kind === 'rejected' ? { ...one, format: csvFormat.name } : one))
    }
  } catch (error) {
    if (!(error instanceof FormatError) || error instanceof SheetTooLarge || isRead) throw error
    return error
  }
  return isRead
    ? undefined
    : new FormatError(`${path} has no rows below a header, which has more than one cell.`)
}

/** Bounds a list, because all of its rows are in memory together, each with the header. */
const LIST_CHARACTERS = 8 * 1024 * 1024

/** The header is the first row with more than one cell: there are often titles above it. */
async function* tablesOf({ rows }: Sheet, place: Place) {
  let header: string[] | undefined
  let headerLength = 0
  for await (const list of rows()) {
    let found: (CsvRow | Rejected)[] = []
    let characters = 0
    for (const row of list) {
      const length = lengthOf(row.cells)
      if (header === undefined) {
        if (row.cells.filter((cell) => cell.trim() !== '').length <= 1) continue
        if (length > BEGINNING_BYTES)
          throw new SheetTooLarge(
            `The header of ${placeOf(place, row)} has more than ${BEGINNING_BYTES} characters.`,
          )
        header = row.cells.map((name) => name.trim())
        headerLength = length
      } else {
        found.push(
          length > LONGEST_RECORD_BYTES ? tooLong(place, row) : readRow(header, row, place),
        )
        characters += headerLength + length
        if (characters < LIST_CHARACTERS) continue
        yield { header, rows: found }
        found = []
        characters = 0
      }
    }
    if (header !== undefined) yield { header, rows: found }
  }
}

function lengthOf(cells: readonly string[]): number {
  return cells.reduce((sum, cell) => sum + cell.length, cells.length)
}

function placeOf({ path, pointer = '' }: Place, { number }: SheetRow): string {
  return `${path}${pointer}, row ${number}`
}

function tooLong(place: Place, { number }: SheetRow): Rejected {
  const reason = `The row has more than ${LONGEST_RECORD_BYTES} characters.`
  return rejected(reason, { ...place, line: number }, undefined)
}

function readRow(header: readonly string[], { number, cells }: SheetRow, place: Place): CsvRow {
  return rowOf(header, cells, { ...place, line: number }, csvOf(header, cells))
}

/** Writes a rejected row as CSV, so that the user can correct and import it. */
function csvOf(header: readonly string[], cells: readonly string[]): string {
  const line = (row: readonly string[]) =>
    row.map((cell) => `"${cell.replaceAll('"', '""')}"`).join(',')
  return `${line(header)}\n${line(header.map((_, at) => cells[at] ?? ''))}`
}
