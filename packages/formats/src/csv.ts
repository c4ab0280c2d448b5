// CSV with a quote in each row, and the fields of its source beside it.
import { type CsvRows, csvColumns, readCsvRows } from './csv-rows.ts'
import { createRowReader, FIELDS, SOURCE_ID } from './csv-threads.ts'
import { type Format, FormatError, type FormatOptions, type Found, type InputFile } from './format.ts'
import { checkFields } from './thread-fields.ts'

type Mapping = Pick<FormatOptions, 'map' | 'set'>

/**
 * Reads each row as a quote. `--group-by` names the column whose value identifies the source. Without it, each row is a source of its own, and `externalId`
 * identifies both. Columns are named after the fields, or `--map field=column` names them; `--set field=value` gives a field of all rows.
 */
export const csvFormat: Format = {
  name: 'csv',
  description: 'CSV, a row for each quote (see --group-by, --map and --set)',
  isScattered: true,
  async recognises([first], beginning) {
    return first !== undefined && /\.(csv|tsv)\b/i.test(first.path) && csvColumns(await beginning(first)).length > 1
  },
  async *read(files, { map, set, groupBy }) {
    const mapping = { map: groupBy === undefined ? map : new Map([...map, [SOURCE_ID, groupBy]]), set }
    checkFields(mapping, FIELDS)
    for (const file of files) yield* readFile(file, mapping)
  },
}

async function* readFile(file: InputFile, mapping: Mapping): AsyncGenerator<Found[]> {
  const readRow = createRowReader(mapping)
  let isFirst = true
  for await (const { header, rows } of readCsvRows(file)) {
    if (isFirst) yield checkHeader(header, file, mapping)
    isFirst = false
    const isGrouped = header.includes(mapping.map.get(SOURCE_ID) ?? SOURCE_ID)
    yield rows.flatMap((row) => (row.kind === 'rejected' ? [row] : readRow(row, isGrouped)))
  }
}

/**
 * Returns notes of the columns that are not read.
 *
 * @throws {FormatError} if a column is missing without which no row can be read.
 */
function checkHeader(header: CsvRows['header'], { path }: InputFile, { map, set }: Mapping): Found[] {
  const refuse = (missing: string) => {
    throw new FormatError(`${path} has ${missing}. Its columns: ${header.join(', ')}.`)
  }
  const columnOf = (field: string) => map.get(field) ?? field
  const has = (field: string) => set.has(field) || header.includes(columnOf(field))
  for (const column of map.values()) if (!header.includes(column)) refuse(`no column ${column}`)
  if (!has('service')) refuse('no column service: add --set service=custom, or --map service=COLUMN')
  if (!has(SOURCE_ID) && !has('externalId'))
    refuse(
      'no column externalId: name what identifies a thread with --group-by COLUMN, or a row with --map externalId=COLUMN',
    )
  if (!has('text') && !has('title')) refuse('no column text: add --map text=COLUMN')
  const used = new Set([...FIELDS].map(columnOf))
  const unknown = header.filter((column) => !used.has(column))
  return unknown.map((column) => ({
    kind: 'skipped',
    reason: `files with the unknown column ${column}`,
    place: { path, line: 1 },
  }))
}
