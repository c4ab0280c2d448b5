// The formats of Sluice's own threads: NDJSON, and a JSON array.
import {
  createThreadParser,
  DEFAULT_LIMITS,
  isRecord,
  meantField,
  type Thread,
  type ValidationError,
} from '@sluice/contract'
import type { Format, FormatOptions, Found, Noted, Piece, Place, Rejected } from '../format.ts'
import { eachFile, rejected, skipped } from '../format.ts'
import { byShape } from '../read/json-beginning.ts'
import {
  foundIn,
  type JsonRecord,
  readJsonFile,
  readJsonLines,
  recordsAndLists,
} from '../read/json-records.ts'
import { asArray, asObjects, type JsonObject } from '../values/record-fields.ts'
import {
  checkFields,
  fieldValue,
  mapOption,
  QUOTE_FIELDS,
  SOURCE_FIELDS,
} from '../values/thread-fields.ts'

/** Reads what POST /sources:batch accepts. A line can have up to `LONGEST_RECORD_BYTES`. */
export const ndjsonFormat: Format = {
  name: 'ndjson',
  title: 'NDJSON',
  description: 'NDJSON of Sluice threads, a thread a line',
  sourceIs: 'a thread as `POST /sources` accepts it',
  options: ['map', 'set'],
  hasWholeThreads: true,
  recognises: byShape(
    ({ root, isOneLine, members }) => root === '{' && isOneLine && members.has('quotes'),
  ),
  read: eachFile((file, options) => foundIn(readJsonLines(file), createThreadReader(options))),
}

/** An array of threads, or a single thread. */
export const jsonFormat: Format = {
  name: 'json',
  title: 'JSON',
  description: 'a JSON array of Sluice threads',
  sourceIs: 'a thread as `POST /sources` accepts it',
  options: ['map', 'set'],
  hasWholeThreads: true,
  recognises: byShape(({ members }) => members.has('[].quotes') || members.has('quotes')),
  read: eachFile((file, options) =>
    foundIn(readJsonFile(file, recordsAndLists()), createThreadReader(options)),
  ),
}

const IDS = new Set(['externalId', 'replyingTo', 'channelId'])

/** No bounds, because threads are later cut and split to fit the service's bounds. */
const most = Number.MAX_SAFE_INTEGER
const lengths = {
  externalId: most,
  title: most,
  text: most,
  url: most,
  description: most,
  string: most,
}
const parse = createThreadParser({ ...DEFAULT_LIMITS, ...lengths, quotes: most })

/**
 * Creates a reader for a file. It skips quotes without text, replaces lone surrogates, and warns
 * about unknown fields. `--map` renames fields of sources and quotes, and `--set` sets fields of
 * all sources. Throws FormatError if either names an unknown field.
 */
function createThreadReader(
  options: Pick<FormatOptions, 'map' | 'set'>,
): (record: JsonRecord) => Found | Found[] {
  const prepare = createPreparation(options)
  const noteUnknown = createUnknownFieldNotes()
  return ({ value, place }) => {
    if (!isRecord(value)) return rejected('The record is not a JSON object.', place, value)
    const thread = prepare(value)
    const found: Found[] = noteUnknown(thread, place)
    const parsed = parse(thread, { strict: false })
    if (parsed.ok) found.push(toPiece(parsed.thread, place))
    else found.push(...readRepaired(thread, place, value))
    return found
  }
}

/** Reads an invalid thread without empty quotes and lone surrogates, and with numbers as ids. */
function readRepaired({ quotes, ...source }: JsonObject, place: Place, original: unknown): Found[] {
  const all = asArray(quotes)
  const kept = all.filter((quote) => !isRecord(quote) || !isBlank(quote.text))
  const notes: Found[] = Array.from({ length: all.length - kept.length }, () =>
    skipped('quotes without text', place),
  )
  let hasSurrogates = false
  const wellFormed = (record: JsonObject) =>
    Object.fromEntries(
      Object.entries(record).map(([name, value]) => {
        if (IDS.has(name) && Number.isSafeInteger(value)) return [name, String(value)]
        if (typeof value !== 'string' || value.isWellFormed()) return [name, value]
        hasSurrogates = true
        return [name, value.toWellFormed()]
      }),
    )
  const repaired = kept.map((quote) => (isRecord(quote) ? wellFormed(quote) : quote))
  const thread = { ...wellFormed(source), quotes: Array.isArray(quotes) ? repaired : quotes }
  const parsed = parse(thread, { strict: false })
  if (!parsed.ok) return [rejectInvalid(parsed.errors, parsed.total, place, original)]
  if (hasSurrogates) notes.push({ kind: 'replaced', reason: 'threads with lone surrogates', place })
  return [...notes, toPiece(parsed.thread, place)]
}

function toPiece({ source, quotes }: Thread, place: Place): Piece {
  const { service, externalId, ...fields } = source
  const piece = { kind: 'piece', service, externalId, order: '', fields, quotes, place } as const
  return { ...piece, isOwnForm: true }
}

function rejectInvalid(
  [first]: ValidationError[],
  total: number,
  place: Place,
  record: unknown,
): Rejected {
  const more = total > 1 ? ` (and ${total - 1} more)` : ''
  const pointer = `${place.pointer ?? ''}${first?.pointer ?? ''}`
  const isId = [...IDS].some((name) => first?.message.startsWith(`${name} must be of type`))
  const advice = isId
    ? ' Write an id of more than 15 digits as text: JSON rounds such a number.'
    : ''
  return rejected(
    `${first?.message}${more}${advice}`,
    { ...place, ...(pointer && { pointer }) },
    record,
  )
}

/** Applies `--map` and `--set`. If neither is given, returns the record itself. */
function createPreparation(
  options: Pick<FormatOptions, 'map' | 'set'>,
): (record: JsonObject) => JsonObject {
  checkFields('--map', options.map, new Set([...SOURCE_FIELDS, ...QUOTE_FIELDS]))
  checkFields('--set', options.set, SOURCE_FIELDS)
  const set = Object.fromEntries(
    [...options.set].map(([field, text]) => [field, fieldValue(field, text)]),
  )
  const map = [...options.map]
  if (map.length === 0 && options.set.size === 0) return (record) => record
  const ofSource = map.filter(([field]) => SOURCE_FIELDS.has(field))
  const ofQuote = map.filter(([field]) => QUOTE_FIELDS.has(field))
  return (record) => {
    const thread = { ...rename(record, ofSource), ...set }
    if (!Array.isArray(thread.quotes)) return thread
    return {
      ...thread,
      quotes: thread.quotes.map((quote) => (isRecord(quote) ? rename(quote, ofQuote) : quote)),
    }
  }
}

function rename(
  record: JsonObject,
  names: readonly (readonly [field: string, name: string])[],
): JsonObject {
  const renamed = { ...record }
  for (const [field, name] of names) {
    if (!Object.hasOwn(record, name)) continue
    delete renamed[name]
    renamed[field] = record[name]
  }
  return renamed
}

/** At most this number of unknown names is noted, because names can be data. */
const NOTED_NAMES = 50

function createUnknownFieldNotes(): (thread: JsonObject, place: Place) => Noted[] {
  const noted = new Set<string>()
  const notesOn = (record: JsonObject, of: Owner, place: Place): Noted[] =>
    Object.keys(record).flatMap((name) => {
      const field = `${of}/${name}`
      if (KNOWN[of].has(name) || noted.size === NOTED_NAMES || noted.has(field)) return []
      noted.add(field)
      return [{ kind: 'warning', reason: unknownField(record, name, of), place }]
    })
  return (thread, place) => [
    ...notesOn(thread, 'source', place),
    ...asObjects(thread.quotes).flatMap((quote) => notesOn(quote, 'quote', place)),
  ]
}

function unknownField(record: JsonObject, name: string, of: Owner): string {
  const fact = `${name.slice(0, 100)} is not a field of a ${of} and was ignored.`
  const meant = meantField(record, name, of, [...KNOWN[of]])
  if (meant === undefined) return fact
  return `${fact} Did you mean ${meant}?${meant === 'quotes' ? '' : ` Take it with ${mapOption(meant, name)}.`}`
}

type Owner = 'source' | 'quote'

const KNOWN: Readonly<Record<Owner, ReadonlySet<string>>> = {
  source: new Set([...SOURCE_FIELDS, 'quotes']),
  quote: QUOTE_FIELDS,
}

function isBlank(value: unknown): boolean {
  return value === undefined || value === null || (typeof value === 'string' && value.trim() === '')
}
