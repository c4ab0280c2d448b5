// Converts a row of a table to a piece of a thread.
import { SERVICES } from '@sluice/contract'
import type { Found, QuoteInput, SourceInput } from '../format.ts'
import { rejected, skipped } from '../format.ts'
import type { CsvRow } from '../read/csv-rows.ts'
import { firstLine, present } from '../values/record-fields.ts'
import { DATES, NUMBERS, QUOTE_FIELDS, SOURCE_FIELDS } from '../values/thread-fields.ts'
import { numberIn, type ReadDate, TWO_NUMBERS } from '../values/written-values.ts'

const SHARED = [...SOURCE_FIELDS].filter((field) => QUOTE_FIELDS.has(field))
/** The column of a source's field that quotes have as well, such as `source.createdAt`. */
const ofSource = (field: string) => `source.${field}`
const columnOf = (field: string) => (SHARED.includes(field) ? ofSource(field) : field)

/** The names that columns may have. */
export const FIELDS: ReadonlySet<string> = new Set([
  ...SOURCE_FIELDS,
  ...QUOTE_FIELDS,
  ...SHARED.map(ofSource),
])
export const SOURCE_ID = ofSource('externalId')

/** The fields to which no special rules apply. */
const OF_SOURCE = [...SOURCE_FIELDS].filter(
  (field) => field !== 'service' && field !== 'externalId',
)
const OF_QUOTE = [...QUOTE_FIELDS].filter((field) => field !== 'username')
const IDS = [SOURCE_ID, 'externalId', 'replyingTo', 'channelId']
/** Matches what a spreadsheet makes of a long number. Different ids would become the same. */
const ROUNDED = /^\d(?:[.,]\d+)?E\+\d+$/i

/** What a spreadsheet shows for a missing value. Different ids would become the same. */
const NO_VALUE =
  /^(#(N\/[AD]|NV|NAME\?|NOM\?|¿NOMBRE\?|¡?(REF|BEZUG|VALUE|WERT|VALEUR|VALORE?|DIV\/0|NULL|NUM|ZAHL|NOMBRE|SPILL|CALC|FIELD)!)|Err:\d{3})$/

/**
 * If a cell of a column is empty, pandas writes the column's whole numbers in this form. This
 * happens to a column of parents, but not to a column of ids.
 */
const WHOLE = /^(\d+)\.0$/

/** How to read a file, according to its header and the options. */
export interface Table {
  /** The values that `--set` gives to all rows. */
  set: ReadonlyMap<string, string>
  /** The column of each field. */
  columns: ReadonlyMap<string, string>
  dates: ReadDate
  /** Whether a separate column identifies the source. */
  isGrouped: boolean
  hasText: boolean
}

/** Returns a field's value in the row, if it is not blank. */
type ValueIn = (field: string) => string | undefined

/** Reads a row. Rejects it if the API would reject its thread for an id, a date or a number. */
export function readRow({ place, raw, values }: CsvRow, table: Table): Found[] {
  const { set, columns, dates, isGrouped, hasText } = table
  const valueIn: ValueIn = (field) => {
    const column = columns.get(field)
    return set.get(field) ?? (column === undefined ? undefined : values.get(column))
  }
  const service = SERVICES.find((each) => each === valueIn('service'))
  const externalId = valueIn(isGrouped ? SOURCE_ID : 'externalId')?.replace(WHOLE, '$1')
  const reject = (reason: string) => [rejected(reason, place, raw)]
  const fault = errorIn(table, values) ?? faultOf(valueIn, dates)
  if (fault !== undefined) return reject(fault)
  if (service === undefined) return reject(`service must be one of: ${SERVICES.join(', ')}.`)
  if (externalId === undefined) return reject('The column that identifies the source is empty.')
  const quotes = quotesOf(valueIn, dates)
  if (quotes.length === 0 && hasText) return [skipped('rows without text', place)]
  const fields = {
    ...sourceFields(valueIn, table),
    placeholderTitle: placeholder(valueIn, isGrouped),
  }
  return [{ kind: 'piece', service, externalId, order: '', fields, quotes, place }]
}

function valuesOf(fields: readonly string[], valueIn: ValueIn, dates: ReadDate): object {
  return present(
    Object.fromEntries(fields.map((field) => [field, readValue(field, valueIn(field), dates)])),
  )
}

function readValue(field: string, text: string | undefined, dates: ReadDate): unknown {
  if (text !== undefined && DATES.has(field)) return dates.read(text)
  if (IDS.includes(field)) return text?.replace(WHOLE, '$1')
  return NUMBERS.has(field) ? numberIn(text) : text
}

function placeholder(valueIn: ValueIn, isGrouped: boolean): string {
  return firstLine(
    (isGrouped ? valueIn(SOURCE_ID) : (valueIn('text') ?? valueIn('externalId'))) ?? '',
  )
}

function quotesOf(valueIn: ValueIn, dates: ReadDate): QuoteInput[] {
  const text = valueIn('text')
  if (text === undefined) return []
  const speaker = valueIn('speaker') ?? valueIn('username')
  return [{ ...valuesOf(OF_QUOTE, valueIn, dates), text, ...present({ speaker }) }]
}

/** Without a column for the source's date, a source of one row gets the date of its quote. */
function sourceFields(valueIn: ValueIn, { isGrouped, dates }: Table): SourceInput {
  const ofQuote = isGrouped ? undefined : dates.read(valueIn('createdAt') ?? '')
  return {
    ...present({ createdAt: ofQuote }),
    ...valuesOf(OF_SOURCE, (field) => valueIn(columnOf(field)), dates),
  }
}

function errorIn({ columns }: Table, values: CsvRow['values']): string | undefined {
  for (const [field, column] of columns) {
    const value = values.get(column)
    // Most values need no search.
    if ((value?.[0] === '#' || value?.[0] === 'E') && NO_VALUE.test(value))
      return `${field} has an error of a spreadsheet: ${value}.`
  }
  return undefined
}

function faultOf(valueIn: ValueIn, dates: ReadDate): string | undefined {
  const rounded = IDS.find((field) => ROUNDED.test(valueIn(field) ?? ''))
  if (rounded !== undefined)
    return `A spreadsheet rounded ${rounded}, so it is lost: ${valueIn(rounded)}.`
  const faulty = [...DATES, ...NUMBERS]
    .flatMap((field) =>
      [field, ofSource(field)].map((column) => ({ field, column, text: valueIn(column) ?? '' })),
    )
    .find(({ field, text }) => text !== '' && readValue(field, text, dates) === undefined)
  if (faulty === undefined) return undefined
  const { field, column, text } = faulty
  if (DATES.has(field)) return `${column} ${dates.faultOf(text)}`
  const [point, comma] = [text.replace(',', ''), text.replace(',', '.')]
  const readings = TWO_NUMBERS.test(text.trim())
    ? `, because it may be ${point.trim()} or ${comma.trim()}`
    : ''
  return `${column} is not a number${readings}: ${text.slice(0, 100)}.`
}
