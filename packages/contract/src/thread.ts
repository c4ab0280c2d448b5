// Brings a request into normal form, in which it is queued, stored and returned: its fields, its dates and its score.
import type { FieldNames, QuoteRequest, ThreadRequest } from './thread-request.ts'
import { SOURCE } from './warnings.ts'

/** An absent field is a missing key. Only requests use null for it. */
type Present<T> = { [K in keyof T]: NonNullable<T[K]> }

type PrunedQuote = Present<QuoteRequest>

/** A valid request without its absent fields. */
export type PrunedRequest = Present<Omit<ThreadRequest, 'quotes'>> & { quotes: PrunedQuote[] }

/** A source as it was sent, normalised: dates in UTC with milliseconds, `score` only if it was sent. */
export type SourceFields = Omit<PrunedRequest, 'quotes'>

/** A quote as it was sent, normalised like its source. `speaker` stands for `username` too. */
export type QuoteFields = Omit<PrunedQuote, 'username'>

/** One accepted request. No two of its quotes have the same `externalId`. */
export type Thread = { source: SourceFields; quotes: QuoteFields[] }

type Fields = Record<string, unknown>

/**
 * Copies the known fields of a request that are neither null nor blank, in the order of the schema. It never looks into
 * a value of the wrong type, so unknown fields cost nothing. More than `maxQuotes` quotes are all left out.
 *
 * @param unknown receives the indexes of the quotes that have unknown fields, and `SOURCE`.
 */
export function pruneRequest(body: Fields, names: FieldNames, maxQuotes: number, unknown: number[]): Fields {
  const request = pruneFields(body, names.source, unknown, SOURCE)
  const quotes: unknown = request.quotes
  if (!Array.isArray(quotes)) return request
  const prune = (quote: unknown, at: number) => (isRecord(quote) ? pruneFields(quote, names.quote, unknown, at) : quote)
  request.quotes = quotes.length > maxQuotes ? [] : quotes.map(prune)
  return request
}

function pruneFields(input: Fields, names: readonly string[], unknown: number[], at: number): Fields {
  const pruned: Fields = {}
  let left = Object.keys(input).length
  for (const name of names) {
    if (!Object.hasOwn(input, name)) continue
    left -= 1
    const value = input[name]
    if (!isAbsent(value)) pruned[name] = value
  }
  if (left > 0) unknown.push(at)
  return pruned
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null || (typeof value === 'string' && value.trim() === '')
}

/** Whether a parsed JSON value is an object: neither an array nor null. */
export function isRecord(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Normalises a valid request, whose quotes are changed in place. Normalising the result again changes nothing. Every
 * field is copied, in the order of the schema, so that equal requests have equal JSON.
 */
export function normaliseThread({ quotes, ...source }: PrunedRequest): Thread {
  normaliseValues(source)
  return { source, quotes: mergeQuotes(quotes) }
}

/** Merges quotes with the same `externalId`, at the index of the first and in the order sent. */
function mergeQuotes(requests: PrunedQuote[]): QuoteFields[] {
  const quotes: QuoteFields[] = []
  const byExternalId = new Map<string, QuoteFields>()
  for (const request of requests) {
    const quote = toQuote(request)
    const first = quote.externalId === undefined ? undefined : byExternalId.get(quote.externalId)
    if (first !== undefined) {
      Object.assign(first, quote)
      continue
    }
    quotes.push(quote)
    if (quote.externalId !== undefined) byExternalId.set(quote.externalId, quote)
  }
  return quotes
}

/** `username` becomes `speaker` at its place in the schema, because equal quotes must have equal JSON. */
function toQuote(quote: PrunedQuote): QuoteFields {
  normaliseValues(quote)
  if (quote.username === undefined) return quote
  const { text, externalId, username, speaker = username, ...others } = quote
  return { text, ...(externalId !== undefined && { externalId }), speaker, ...others }
}

/** Changes dates and numbers in place. */
function normaliseValues(fields: Votes & { createdAt?: string }): void {
  if (fields.createdAt !== undefined) fields.createdAt = parseIsoDate(fields.createdAt) ?? fields.createdAt
  // Adding 0 turns -0, which JSON can't represent, into 0.
  if (fields.upVotes !== undefined) fields.upVotes += 0
  if (fields.downVotes !== undefined) fields.downVotes += 0
  if (fields.score !== undefined) fields.score += 0
}

/** The votes of a source or a quote. */
export type Votes = Partial<Record<'upVotes' | 'downVotes' | 'score', number | undefined>>

/**
 * The score to show: the one that was sent, else `upVotes` minus `downVotes`, where a missing one counts as 0. Undefined
 * if neither is known, or if the difference is beyond a double's range.
 */
export function effectiveScore({ upVotes, downVotes, score }: Votes): number | undefined {
  if (score !== undefined) return score
  if (upVotes === undefined && downVotes === undefined) return undefined
  const difference = (upVotes ?? 0) - (downVotes ?? 0)
  return Number.isFinite(difference) ? difference : undefined
}

// Day, hours and minutes, seconds, decimals, hours of the offset with their sign, minutes of the offset.
const DATE_FORM =
  /^((?!0000)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01]))(?:T((?:[01]\d|2[0-3]):[0-5]\d)(?:(:[0-5]\d)(?:[.,](\d+))?)?(?:Z|([+-](?:[01]\d|2[0-3]))(?::?([0-5]\d))?)?)?$/

/**
 * Reads a date of ISO 8601-1 in its extended form: a full date, which is midnight UTC, or a date-time with `Z`, an
 * offset, or neither, which is UTC. Returns the moment in UTC with milliseconds (`2024-05-01T00:00:00.000Z`), further
 * decimals cut off. Returns undefined if the text has another form, names a day that does not exist, or lies outside the
 * years 1 to 9999 of UTC.
 *
 * Every quote has a date or two, so this works on the text if it can: `toISOString` alone is slower than all of it.
 */
export function parseIsoDate(text: string): string | undefined {
  const parts = DATE_FORM.exec(text)
  const day = parts?.[1]
  if (!parts || day === undefined || !existsInCalendar(day)) return undefined
  const time = parts[2] ?? '00:00'
  const rest = `${parts[3] ?? ':00'}.${milliseconds(parts[4])}Z`
  const utc = parts[5] === undefined ? `${day}T${time}` : toUtc(`${day}T${time}${parts[5]}:${parts[6] ?? '00'}`)
  return utc && `${utc}${rest}`
}

/**
 * Returns a day and time with an offset (`2024-05-01T09:30+02:00`) in UTC. Undefined outside the years 1 to 9999: many
 * clients of MongoDB, Python's among them, can't read a stored date before year 1.
 */
function toUtc(time: string): string | undefined {
  const utc = new Date(time).toISOString()
  return /^(?!0000)\d{4}-/.test(utc) ? utc.slice(0, 16) : undefined
}

/** `Date` reads 30 February as 1 March. */
function existsInCalendar(day: string): boolean {
  const dayOfMonth = Number(day.slice(8))
  return dayOfMonth <= 28 || new Date(day).getUTCDate() === dayOfMonth
}

function milliseconds(decimals = ''): string {
  return decimals.length === 3 ? decimals : decimals.slice(0, 3).padEnd(3, '0')
}
