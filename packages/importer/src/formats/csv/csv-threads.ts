// Makes a piece of a thread from a CSV row.
import { parseIsoDate, SERVICES } from '@sluice/contract'
import type { FormatOptions, Found, QuoteInput, SourceFields } from '../format.ts'
import { rejected, skipped } from '../format.ts'
import type { CsvRow } from '../read/csv-rows.ts'
import { isoDateOf } from '../values/iso-date.ts'
import { asNumber, firstLine, present } from '../values/record-fields.ts'
import { DATES, NUMBERS, QUOTE_FIELDS, SOURCE_FIELDS } from '../values/thread-fields.ts'

const SHARED = [...SOURCE_FIELDS].filter((field) => QUOTE_FIELDS.has(field))
/** The column of a field that quotes have too, such as `source.createdAt`. */
const ofSource = (field: string) => `source.${field}`
const columnOf = (field: string) => (SHARED.includes(field) ? ofSource(field) : field)

/** The names that columns can have. */
export const FIELDS: ReadonlySet<string> = new Set([...SOURCE_FIELDS, ...QUOTE_FIELDS, ...SHARED.map(ofSource)])
export const SOURCE_ID = ofSource('externalId')

/** The fields that have no rules of their own. */
const OF_SOURCE = [...SOURCE_FIELDS].filter((field) => field !== 'service' && field !== 'externalId')
const OF_QUOTE = [...QUOTE_FIELDS].filter((field) => field !== 'username')

export type Mapping = Pick<FormatOptions, 'map' | 'set'>

export interface HeaderFacts {
  /** Whether a column of its own identifies the source. */
  isGrouped: boolean
  hasText: boolean
}

/** Returns a field's value in the row, if it is not blank. */
type ValueIn = (field: string) => string | undefined

/** Rejects a row whose ids, dates or numbers can't be read: else the API would reject its whole thread. */
export function readRow(row: CsvRow, { map, set }: Mapping, { isGrouped, hasText }: HeaderFacts): Found[] {
  const { place, raw, values } = row
  const valueIn: ValueIn = (field) => set.get(field) ?? values.get(map.get(field) ?? field)
  const service = SERVICES.find((each) => each === valueIn('service'))
  const externalId = valueIn(isGrouped ? SOURCE_ID : 'externalId')
  const reject = (reason: string) => [rejected(reason, place, raw)]
  const fault = faultOf(valueIn)
  if (fault !== undefined) return reject(fault)
  if (service === undefined) return reject(`service must be one of: ${SERVICES.join(', ')}.`)
  if (externalId === undefined) return reject('The column that identifies the source is empty.')
  const quotes = quotesOf(valueIn)
  if (quotes.length === 0 && hasText) return [skipped('rows without text', place)]
  const fields = { ...sourceFields(valueIn, isGrouped), placeholderTitle: placeholder(valueIn, isGrouped) }
  return [{ kind: 'piece', service, externalId, order: '', fields, quotes, place }]
}

function valuesOf(fields: readonly string[], valueIn: ValueIn): object {
  return present(Object.fromEntries(fields.map((field) => [field, readValue(field, valueIn(field))])))
}

function readValue(field: string, text: string | undefined): unknown {
  if (text !== undefined && DATES.has(field)) return dateIn(text)
  return NUMBERS.has(field) ? asNumber(text) : text
}

function placeholder(valueIn: ValueIn, isGrouped: boolean): string {
  return firstLine((isGrouped ? valueIn(SOURCE_ID) : (valueIn('text') ?? valueIn('externalId'))) ?? '')
}

function quotesOf(valueIn: ValueIn): QuoteInput[] {
  const text = valueIn('text')
  if (text === undefined) return []
  const speaker = valueIn('speaker') ?? valueIn('username')
  return [{ ...valuesOf(OF_QUOTE, valueIn), text, ...present({ speaker }) }]
}

/** Without a column for the source's date, a source of one row gets the date of its quote. */
function sourceFields(valueIn: ValueIn, isGrouped: boolean): SourceFields {
  const ofQuote = isGrouped ? undefined : dateIn(valueIn('createdAt'))
  return { ...present({ createdAt: ofQuote }), ...valuesOf(OF_SOURCE, (field) => valueIn(columnOf(field))) }
}

/** Reads ISO 8601, also with a space for the T, or seconds or milliseconds since 1970. */
function dateIn(text = ''): string | undefined {
  const value = text.trim()
  if (/^\d{10}$/.test(value)) return isoDateOf(Number(value))
  if (/^\d{13}$/.test(value)) return isoDateOf(Number(value) / 1_000)
  const [, day, time, zone = ''] = /^(\S+) (\S+?) ?(Z|UTC|[+-]\S+)?$/.exec(value) ?? []
  return parseIsoDate(day === undefined ? value : `${day}T${time}${zone === 'UTC' ? 'Z' : zone}`)
}

function faultOf(valueIn: ValueIn): string | undefined {
  const faulty = [...DATES, ...NUMBERS]
    .flatMap((field) => [field, ofSource(field)].map((column) => ({ field, column, text: valueIn(column) })))
    .find(({ field, text }) => text !== undefined && readValue(field, text) === undefined)
  if (faulty === undefined) return undefined
  const kind = DATES.has(faulty.field) ? 'a date of ISO 8601, such as 2024-05-01T09:30:00Z' : 'a number'
  return `${faulty.column} is not ${kind}: ${faulty.text?.slice(0, 100)}.`
}
