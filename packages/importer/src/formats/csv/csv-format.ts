// Reads CSV in which each row is a quote, and also has the fields of the quote's source. If columns
// are missing, the error says how to name them.
import { meantField } from '@sluice/contract'
import {
  eachFile,
  type Format,
  FormatError,
  type FormatOptions,
  type Found,
  type Noted,
  type Rejected,
} from '../format.ts'
import {
  type CsvRow,
  csvColumns,
  faultOfRows,
  readCsvRows,
  refuseIfAlike,
  rowsOfBeginning,
} from '../read/csv-rows.ts'
import {
  checkFields,
  mapOption,
  QUOTE_FIELDS,
  SOURCE_FIELDS,
  shellWord,
} from '../values/thread-fields.ts'
import { createDateReader } from '../values/written-values.ts'
import { FIELDS, readRow, SOURCE_ID } from './csv-threads.ts'

/**
 * Reads each row as a quote. `--group-by` names the column that identifies the source. Without it,
 * each row is a separate source, and `externalId` identifies both. A column has the name of a
 * field, or is named by `--map`. `--set` sets a field of all rows.
 */
export const csvFormat: Format = {
  name: 'csv',
  title: 'CSV',
  description: 'CSV, a row for each quote (see --group-by, --map and --set)',
  sourceIs: 'the rows with one value in the column of `--group-by`; without it, each row',
  howTo: 'any table: `sluice import FILE.csv --dry-run` says which options its columns need',
  options: ['map', 'set', 'groupBy', 'dateFormat', 'timezone'],
  recognises: ({ path }, beginning) =>
    /\.(csv|tsv)\b/i.test(path) && csvColumns(beginning).length > 1,
  faultOf: ({ path }, beginning, options) =>
    faultOfTables(readTable(path, rowsOfBeginning(path, beginning), options), options),
  read: eachFile((file, options) => readTable(file.path, readCsvRows(file), options)),
}

/**
 * Returns an error if tables lack columns, or if all rows have the same fault. Throws it if an
 * option is wrong.
 */
export async function faultOfTables(lists: ReturnType<Format['read']>, options: FormatOptions) {
  mappingOf(options)
  return await faultOfRows(lists)
}

/** The rows of a table, and the names of all columns. */
type Tables = AsyncIterable<{
  header: readonly string[]
  rows: readonly (CsvRow | Rejected | Noted)[]
}>

/** Yields lists of rows. Throws FormatError if a column is missing, or all rows have one fault. */
export async function* readTable(
  path: string,
  tables: Tables,
  options: FormatOptions,
): AsyncGenerator<Found[]> {
  const mapping = mappingOf(options)
  const dates = createDateReader(options)
  let isFirst = true
  for await (const { header, rows } of tables) {
    const known = columnsOf(header, path, mapping)
    if (isFirst) yield checkHeader(known, path, mapping)
    const { columns, has } = known
    const table = {
      set: mapping.set,
      columns,
      dates,
      isGrouped: columns.has(SOURCE_ID),
      hasText: has('text'),
    }
    const found = rows.flatMap((row) => (row.kind === 'row' ? readRow(row, table) : [row]))
    if (isFirst) refuseIfAlike(found, path)
    isFirst = false
    yield found
  }
}

function mappingOf({ map, set, groupBy }: FormatOptions): Mapping {
  const whole = groupBy === undefined ? map : new Map([...map, [SOURCE_ID, groupBy]])
  checkFields('--map', whole, FIELDS)
  checkFields('--set', set, FIELDS)
  return { map: whole, set }
}

type Mapping = Pick<FormatOptions, 'map' | 'set'>
type Columns = ReturnType<typeof columnsOf>

interface Need {
  missing: string
  option?: string
}

/** Returns warnings. Throws FormatError with an example if no row could be read. */
function checkHeader(columns: Columns, path: string, mapping: Mapping): Noted[] {
  const needs = needsOf(columns, mapping)
  if (needs.length > 0) throw needsError(needs, path, columns, mapping)
  return adviceOn(columns).map((reason) => ({ kind: 'warning', reason, place: { path, line: 1 } }))
}

/**
 * Finds the column of each field: the column with exactly the field's name, otherwise one that
 * differs only in case, spaces, `_` and `-`.
 */
function columnsOf(header: readonly string[], path: string, { map, set }: Mapping) {
  const columns = new Map<string, string>()
  for (const field of FIELDS) {
    const [column, ...others] = columnsNamed(map.get(field) ?? field, header)
    if (others.length > 0)
      throw new FormatError(`${path} has more than one column ${column}. Give each its own name.`)
    if (column !== undefined) columns.set(field, column)
  }
  const used = new Set(columns.values())
  return {
    header,
    columns,
    /** The columns that do not belong to a field. */
    unread: header.filter((column) => !used.has(column)),
    has: (field: string) => set.has(field) || columns.has(field),
  }
}

function columnsNamed(name: string, header: readonly string[]): readonly string[] {
  const exact = header.filter((column) => column === name)
  return exact.length > 0 ? exact : header.filter((column) => plain(column) === plain(name))
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[\s_-]/g, '')
}

function needsOf(columns: Columns, { map }: Mapping): Need[] {
  const { header, has } = columns
  const needs: Need[] = [...new Set(map.values())]
    .filter((column) => columnsNamed(column, header).length === 0)
    .map((column) => ({ missing: `no column ${named(column)}` }))
  if (!has('service')) needs.push({ missing: 'no column service', option: '--set service=custom' })
  if (!has(SOURCE_ID) && !has('externalId') && !map.has(SOURCE_ID) && !map.has('externalId'))
    needs.push({
      missing: 'no column that identifies a thread',
      option: `--group-by ${PLACEHOLDER}`,
    })
  if (!has('text') && !has('title') && !map.has('text') && !map.has('title'))
    needs.push({ missing: 'no column text', option: optionFor('text', columns) })
  return needs
}

function needsError(
  needs: readonly Need[],
  path: string,
  columns: Columns,
  { map, set }: Mapping,
): FormatError {
  const { header, has, unread } = columns
  const known = [...map].map(([field, column]) => {
    const name = columnsNamed(column, header).length > 0 ? column : PLACEHOLDER
    return field === SOURCE_ID ? `--group-by ${shellWord(name)}` : mapOption(field, name)
  })
  const values = [...set].map(([field, value]) => `--set ${shellWord(`${field}=${value}`)}`)
  const needed = needs.flatMap(({ option }) => option ?? [])
  const meant = GUESSED.flatMap((field) => {
    const column =
      has(field) || map.has(field) ? undefined : unread.find((name) => means(name, field))
    return column === undefined ? [] : mapOption(field, column)
  })
  const added = [...new Set([...needed, ...meant])]
  const command = ['sluice import', shellWord(path), ...known, ...values, ...added].join(' ')
  const groups = added.some((option) => option.startsWith('--group-by'))
    ? ' (--group-by names the column with the id of the thread. If each row is a thread of its own, name its id with --map externalId=COLUMN instead. If no column has an id, group the rows by another one, such as a product or a date.)'
    : ''
  const message = `${path} has ${listed(needs.map(({ missing }) => missing))}. Its columns: ${listed(header.map(named))}. Example: ${command}${groups}`
  return new FormatError(message, [
    ...known.filter((option) => option.endsWith(PLACEHOLDER)),
    ...added,
  ])
}

function adviceOn(columns: Columns): string[] {
  const { unread, has } = columns
  const instead = has(SOURCE_ID) ? 'the id of the thread' : 'the first line of the text'
  const advice: string[] = []
  if (unread.length > 0) advice.push(adviceOnUnread(columns))
  if (!has('title'))
    advice.push(
      `no column gives title, so ${instead} stands for it (${optionFor('title', columns)})`,
    )
  if (!has('speaker') && !has('username'))
    advice.push(`no column gives speaker (${optionFor('speaker', columns)})`)
  return advice
}

function adviceOnUnread({ unread, has }: Columns): string {
  const free = [...FIELDS].filter(
    (field) => !has(field) && !field.startsWith('source.') && field !== 'username',
  )
  const [first = ''] = unread
  const option = mapOption(free.find((field) => means(first, field)) ?? 'FIELD', first)
  const [be, it] = unread.length === 1 ? ['column', 'it'] : ['columns', 'one']
  return `ignored ${be} ${listed(unread.map(named))} (take ${it} with ${option}; fields: ${free.join(', ')})`
}

const PLACEHOLDER = 'COLUMN'
/** The fields for which the proposed command names a column, if the name of one suggests it. */
const GUESSED = ['title', 'text', 'speaker', 'createdAt', 'url', 'channelName'] as const

function optionFor(field: string, { unread }: Columns): string {
  return mapOption(field, unread.find((column) => means(column, field)) ?? PLACEHOLDER)
}

function means(column: string, field: string): boolean {
  const ofQuote = meantField({}, column, 'quote', [...QUOTE_FIELDS])
  const ofSource = meantField({}, column, 'source', [...SOURCE_FIELDS])
  return ofQuote === field || ofSource === field || (LAST_WORDS.has(field) && endsAs(column, field))
}

const LAST_WORDS = new Set(['title', 'text'])

/**
 * Returns whether a column seems to have this field. Many columns name first whose text they have:
 * `Review Text`, `post_title`, `Attribute:Body`. But a name may belong to anybody.
 */
function endsAs(column: string, field: string): boolean {
  const [word = ''] = column
    .toLowerCase()
    .split(/[^a-z]+/)
    .slice(-1)
  if (word === 'name') return false
  return [word, meantField({}, word, 'quote', []), meantField({}, word, 'source', [])].includes(
    field,
  )
}

/**
 * Messages name at most this much of a header, because it can have thousands of columns, with names
 * of any length.
 */
const NAMED_COLUMNS = 30
const NAMED_CHARACTERS = 100

function named(column: string): string {
  return column === '' ? '(without a name)' : column.slice(0, NAMED_CHARACTERS)
}

function listed(names: readonly string[]): string {
  const more = names.length > NAMED_COLUMNS ? [`${names.length - NAMED_COLUMNS} more`] : []
  return [...names.slice(0, NAMED_COLUMNS), ...more].join(', ')
}
