// Workbooks of Excel and OpenDocument. Each sheet is read as a CSV file is.
import {
  eachFile,
  type Format,
  FormatError,
  type FormatOptions,
  type FoundLists,
  type Place,
  skipped,
} from '../format.ts'
import { type CsvRow, rowOf } from '../read/csv-rows.ts'
import { csvFormat, faultOfTables, readTable } from './csv-format.ts'
import { readOds } from './ods.ts'
import { isXlsx, readXlsx } from './xlsx.ts'
import { openWorkbook, type Sheet } from './xml-entry.ts'

const ZIP = Buffer.from('PK\x03\x04')
const ODS = 'mimetypeapplication/vnd.oasis.opendocument.spreadsheet'

/** Reads the sheets that are visible. Memory: the file as it is compressed, and the texts that its cells share. */
export const spreadsheetFormat: Format = {
  name: 'spreadsheet',
  description: 'workbooks (.xlsx, .ods), each sheet as CSV',
  options: csvFormat.options ?? [],
  recognises: ({ path }, bytes) => {
    const isNamed = /\.(xls[xm]|ods)$/i.test(path)
    return (
      bytes.subarray(0, ZIP.length).equals(ZIP) && (isNamed || bytes.includes(ODS) || bytes.includes('xl/workbook'))
    )
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
        if (error !== undefined) yield [skipped(`sheets that are no tables of messages: ${sheet.name}`, place)]
      }
    }
    // A workbook often has sheets of notes and sums beside its table, but one of them must be a table.
    if (!isRead) throw problem ?? new FormatError(`${file.path} has no sheet with rows.`)
  }),
}

/** Returns the error of a sheet without the columns that it needs. */
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
    if (!(error instanceof FormatError) || isRead) throw error
    return error
  }
  return isRead ? undefined : new FormatError(`${path} has no rows below a header, which has more than one cell.`)
}

/** The header is the first row with more than one cell: titles often stand above. */
async function* tablesOf({ rows }: Sheet, place: Place) {
  let header: string[] | undefined
  for await (const list of rows()) {
    const found: CsvRow[] = []
    for (const { number, cells } of list) {
      if (header !== undefined) found.push(rowOf(header, cells, { ...place, line: number }, csvOf(header, cells)))
      else if (cells.filter((cell) => cell.trim() !== '').length > 1) header = cells.map((name) => name.trim())
    }
    if (header !== undefined) yield { header, rows: found }
  }
}

/** A rejected row is written as CSV, to be corrected and imported. */
function csvOf(header: readonly string[], cells: readonly string[]): string {
  const line = (row: readonly string[]) => row.map((cell) => `"${cell.replaceAll('"', '""')}"`).join(',')
  return `${line(header)}\n${line(header.map((_, at) => cells[at] ?? ''))}`
}
