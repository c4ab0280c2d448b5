// CSV with a quote in each row, and the fields of its source beside it.

import type { Format, FormatOptions, Found, InputFile } from '../format.ts'
import { csvColumns, readCsvRows } from '../read/csv-rows.ts'
import { checkFields } from '../values/thread-fields.ts'
import { checkHeader } from './csv-header.ts'
import { createRowReader, FIELDS, SOURCE_ID } from './csv-threads.ts'

type Mapping = Pick<FormatOptions, 'map' | 'set'>

/**
 * Reads each row as a quote. `--group-by` names the column whose value identifies the source. Without it, each row is a source of its own, and `externalId`
 * identifies both. Columns are named after the fields, or `--map field=column` names them; `--set field=value` sets a field of all rows.
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
    checkFields('--map', mapping.map, FIELDS)
    checkFields('--set', set, FIELDS)
    for (const file of files) yield* readFile(file, mapping)
  },
}

async function* readFile(file: InputFile, mapping: Mapping): AsyncGenerator<Found[]> {
  const readRow = createRowReader(mapping)
  let isFirst = true
  for await (const { header, rows } of readCsvRows(file)) {
    if (isFirst) yield checkHeader(header, file.path, mapping)
    isFirst = false
    const isGrouped = header.includes(mapping.map.get(SOURCE_ID) ?? SOURCE_ID)
    yield rows.flatMap((row) => (row.kind === 'rejected' ? [row] : readRow(row, isGrouped)))
  }
}
