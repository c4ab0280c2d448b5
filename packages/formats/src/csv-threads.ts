// Makes a piece of a thread from a CSV row.
import { parseIsoDate, SERVICES } from '@sluice/contract'
import type { CsvRow } from './csv-rows.ts'
import type { FormatOptions, Found, QuoteInput, Rejected, SourceFields } from './format.ts'
import { asNumber } from './json-values.ts'
import { firstLine, isoDate, present } from './piece-fields.ts'
import { QUOTE_FIELDS, SOURCE_FIELDS } from './thread-fields.ts'

const SHARED = [...SOURCE_FIELDS].filter((field) => QUOTE_FIELDS.has(field))
/** Where a source and a quote have a field of the same name, the source's is called `source.createdAt` and so on. */
const ofSource = (field: string) => `source.${field}`

/** The fields that columns can have. */
export const FIELDS: ReadonlySet<string> = new Set([...SOURCE_FIELDS, ...QUOTE_FIELDS, ...SHARED.map(ofSource)])
export const SOURCE_ID = ofSource('externalId')

const VOTES = ['upVotes', 'downVotes', 'score']
const DATES = ['createdAt']

/** Reads one row. `isGrouped`: its source is identified by a column of its own. */
type ReadRow = (row: CsvRow, isGrouped: boolean) => Found[]

/** Returns a field's value in the row, if it is not blank. */
type ValueIn = (field: string) => string | undefined

/** A row whose ids, dates or numbers can't be read is rejected: in a thread with others, it would be the whole thread. */
export function createRowReader({ map, set }: Pick<FormatOptions, 'map' | 'set'>): ReadRow {
  return (row, isGrouped) => {
    const valueIn: ValueIn = (field) => set.get(field) ?? row.values.get(map.get(field) ?? field)
    const fault = faultOf(valueIn)
    if (fault !== undefined) return [reject(row, fault)]
    return readRow(row, valueIn, isGrouped)
  }
}

function readRow(row: CsvRow, valueIn: ValueIn, isGrouped: boolean): Found[] {
  const service = SERVICES.find((each) => each === valueIn('service'))
  const externalId = valueIn(isGrouped ? SOURCE_ID : 'externalId')
  if (service === undefined) return [reject(row, `service must be one of: ${SERVICES.join(', ')}.`)]
  if (externalId === undefined) return [reject(row, 'The column that identifies the source is empty.')]
  const quotes = quotesOf(valueIn)
  const fields = sourceFields(valueIn)
  const [quote] = quotes
  if (!isGrouped && quote?.createdAt) fields.createdAt ??= quote.createdAt
  fields.placeholderTitle = isGrouped || !quote ? externalId : firstLine(quote.text)
  const { place } = row
  const found: Found[] = [{ kind: 'piece', service, externalId, order: '', fields, quotes, place }]
  if (!quote) found.push({ kind: 'skipped', reason: 'rows without text', place })
  return found
}

function quotesOf(valueIn: ValueIn): QuoteInput[] {
  const text = valueIn('text')
  if (text === undefined) return []
  const ids = { externalId: valueIn('externalId'), replyingTo: valueIn('replyingTo') }
  const speaker = valueIn('speaker') ?? valueIn('username')
  return [{ text, ...present({ ...ids, speaker, ...datesAndVotes(valueIn) }) }]
}

function sourceFields(valueIn: ValueIn): SourceFields {
  return present({
    title: valueIn('title'),
    description: valueIn('description'),
    channelName: valueIn('channelName'),
    channelId: valueIn('channelId'),
    url: valueIn('url'),
    ...datesAndVotes((field) => valueIn(ofSource(field))),
  })
}

function datesAndVotes(valueIn: ValueIn) {
  return {
    createdAt: dateIn(valueIn('createdAt')),
    upVotes: asNumber(valueIn('upVotes')),
    downVotes: asNumber(valueIn('downVotes')),
    score: asNumber(valueIn('score')),
  }
}

/** ISO 8601, with a space for the T too, or seconds or milliseconds since 1970. */
function dateIn(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const value = text.trim()
  if (/^\d{10}$/.test(value)) return isoDate(Number(value) * 1_000)
  if (/^\d{13}$/.test(value)) return isoDate(Number(value))
  return parseIsoDate(
    value.replace(
      /^(\S+) (\S+?) ?(Z|UTC|[+-]\S+)?$/,
      (_, day, time, zone) => `${day}T${time}${zone === 'UTC' ? 'Z' : (zone ?? '')}`,
    ),
  )
}

function faultOf(valueIn: ValueIn): string | undefined {
  const isFaulty = (fields: readonly string[], read: (text: string | undefined) => unknown) =>
    fields
      .flatMap((field) => [field, ofSource(field)])
      .find((field) => valueIn(field) !== undefined && read(valueIn(field)) === undefined)
  const date = isFaulty(DATES, dateIn)
  if (date !== undefined) return `${date} is not a date of ISO 8601: ${valueIn(date)?.slice(0, 100)}.`
  const votes = isFaulty(VOTES, asNumber)
  return votes && `${votes} is not a number: ${valueIn(votes)?.slice(0, 100)}.`
}

function reject({ place, raw }: CsvRow, reason: string): Rejected {
  return { kind: 'rejected', reason, place, record: raw }
}
