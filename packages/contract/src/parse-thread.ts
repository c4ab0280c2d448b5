// Parses the text of a body, which is one thread or an array of threads. Checks UTF-8, nesting,
// JSON and the schema. Normalises threads to the form in which they are queued, stored and
// returned.
import { isUtf8 } from 'node:buffer'
import type { ValidateFunction } from 'ajv'
import { isRecord, parseIsoDate, type Votes } from './field-values.ts'
import { addStrictErrors, SOURCE, type Warning, warningsOf } from './leniency.ts'
import type { InvalidText, JsonBounds } from './refused-text.ts'
import { EMPTY_IMPORT, refuseBeyondBounds, refuseSyntax, withExternalId } from './refused-text.ts'
import type {
  FieldNames,
  Limits,
  PrunedQuote,
  PrunedRequest,
  SentQuote,
  Thread,
} from './thread-request.ts'
import { fieldNames, ThreadRequestSchema } from './thread-request.ts'
import { addError, errorsOf, type Parsed, refuseText } from './validation-errors.ts'
import { compileSchema } from './validator.ts'

/**
 * A parsed thread, or its validation errors. `errors` lists at most 50 of them, `total` counts all.
 */
export type ParsedText = { ok: true; thread: Thread; warnings?: Warning[] } | InvalidText

/** The elements of an array. Each has its own errors. */
export type ParsedArray<Element = ParsedText> = { ok: true; elements: Element[] } | InvalidText

type ParseOptions = { strict: boolean }
type Fields = Record<string, unknown>

const NOT_AN_OBJECT = refuseText('type', 'The body must be a JSON object.')

/**
 * Makes the parser of threads for these limits. The parser accepts any parsed JSON value and never
 * throws. It only looks at known fields, so its time is bounded by the size of the body. With
 * `strict`, everything that would be ignored or merged is an error.
 */
export function createThreadParser(limits: Limits) {
  const schema = ThreadRequestSchema(limits)
  const names = fieldNames(schema)
  const maxQuotes = limits.quotes
  let isValid: ValidateFunction<PrunedRequest> | undefined
  return (body: unknown, { strict }: ParseOptions): ParsedText => {
    if (!isRecord(body)) return NOT_AN_OBJECT
    const unknown: number[] = []
    const request = pruneRequest(body, names, maxQuotes, unknown)
    // Compile when needed: it takes about 20 ms, and many processes parse no thread.
    isValid ??= compileSchema(schema)
    const hasForm = isValid(request)
    const list = hasForm ? { errors: [], total: 0 } : errorsOf(isValid.errors)
    const { quotes } = body
    if (Array.isArray(quotes) && quotes.length > maxQuotes) {
      const message = `quotes must have at most ${maxQuotes} elements, and has ${quotes.length}.`
      addError(list, () => ({ pointer: '/quotes', code: 'too_many', message }))
    }
    if (strict) addStrictErrors(list, { body, request }, unknown, names)
    const parsed: ParsedText =
      hasForm && list.total === 0
        ? { ok: true, thread: normaliseThread(request) }
        : withExternalId({ ok: false, ...list }, body)
    const warnings = strict || unknown.length === 0 ? [] : warningsOf(body, unknown, names)
    return warnings.length === 0 ? parsed : { ...parsed, warnings }
  }
}

/**
 * Parses texts. Never throws. Its results are plain data, so that it can run in a worker thread.
 */
export type TextParser = ReturnType<typeof createTextParser>

/** Makes the parsers of texts for these limits. */
export function createTextParser(limits: Limits) {
  const parseThread = createThreadParser(limits)
  return {
    thread(text: Buffer, options: ParseOptions): ParsedText {
      const json = parseJson(text, limits)
      return json.ok ? parseThread(json.value, options) : json
    },
    array(
      text: Buffer,
      { maxItems, ...options }: ParseOptions & { maxItems: number },
    ): ParsedArray {
      return parseArray(parseJson(text, limits), maxItems, (value) => parseThread(value, options))
    },
  }
}

/** Parses each element of an array with at most `maxItems`. */
export function parseArray<Element>(
  json: ReturnType<typeof parseJson>,
  maxItems: number,
  parse: (element: unknown) => Element,
): ParsedArray<Element> {
  if (!json.ok) return json
  if (!Array.isArray(json.value)) return refuseText('type', 'The body must be a JSON array.')
  if (json.value.length === 0) return EMPTY_IMPORT
  return json.value.length > maxItems
    ? refuseText(
        'too_many',
        `An array may have at most ${maxItems} items; send application/x-ndjson for more.`,
      )
    : { ok: true, elements: json.value.map(parse) }
}

const BYTE_ORDER_MARK = '\ufeff'

export function parseJson(
  text: Buffer,
  limits: JsonBounds,
): { ok: true; value: unknown } | InvalidText {
  if (!isUtf8(text)) return refuseText('not_decodable', 'The body is not valid UTF-8.')
  const isSmall = text.length <= limits.nesting && text.length <= limits.jsonValues
  const refused = isSmall ? undefined : refuseBeyondBounds(text, limits)
  if (refused !== undefined) return refused
  const decoded = text.toString('utf8')
  const json = decoded.startsWith(BYTE_ORDER_MARK) ? decoded.slice(1) : decoded
  try {
    return { ok: true, value: JSON.parse(json) }
  } catch (error) {
    return refuseSyntax(error, json)
  }
}

/**
 * Parses a body within the bounds of JSON, requires an object, and checks it with `check`. Never
 * throws.
 */
export function parseBody<Value>(
  text: Buffer,
  limits: JsonBounds,
  check: (value: unknown) => Parsed<Value>,
): Parsed<Value> {
  const json = parseJson(text, limits)
  if (!json.ok) return json
  return isRecord(json.value) ? check(json.value) : NOT_AN_OBJECT
}

/**
 * Copies the known fields of a request that are neither null nor blank, in the order of the schema.
 * Never looks into unknown fields, or values of a wrong type, so their content costs no time.
 * Leaves out all quotes if the request has more than `maxQuotes`.
 *
 * @param unknown gets the indexes of the quotes that have unknown fields, and `SOURCE` if the
 * source has any.
 */
function pruneRequest(
  body: Fields,
  names: FieldNames,
  maxQuotes: number,
  unknown: number[],
): Fields {
  const request = pruneFields(body, names.source, unknown, SOURCE)
  const quotes: unknown = request.quotes
  if (!Array.isArray(quotes)) return request
  const prune = (quote: unknown, at: number) =>
    isRecord(quote) ? pruneFields(quote, names.quote, unknown, at) : quote
  request.quotes = quotes.length > maxQuotes ? [] : quotes.map(prune)
  return request
}

function pruneFields(
  input: Fields,
  names: readonly string[],
  unknown: number[],
  at: number,
): Fields {
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

/**
 * Normalises a valid request in place. Equal requests get equal JSON, because fields stay in the
 * order of the schema. Merges quotes with the same `externalId` into the first of them; the later
 * quote's fields win.
 */
function normaliseThread({ quotes: requests, ...source }: PrunedRequest): Thread {
  normaliseValues(source)
  const quotes = new Map<string | SentQuote, SentQuote>()
  for (const request of requests) {
    const quote = toQuote(request)
    const key = quote.externalId ?? quote
    const first = quotes.get(key)
    if (first === undefined) quotes.set(key, quote)
    else Object.assign(first, quote)
  }
  return { source, quotes: [...quotes.values()] }
}

/**
 * Converts `username` to `speaker`, at the place of `speaker` in the schema, because equal quotes
 * must have equal JSON.
 */
function toQuote(quote: PrunedQuote): SentQuote {
  normaliseValues(quote)
  if (quote.username === undefined) return quote
  const { text, externalId, username, speaker = username, ...others } = quote
  return { text, ...(externalId !== undefined && { externalId }), speaker, ...others }
}

function normaliseValues(fields: Votes & { createdAt?: string }): void {
  if (fields.createdAt !== undefined)
    fields.createdAt = parseIsoDate(fields.createdAt) ?? fields.createdAt
  // Adding 0 turns -0 into 0. `JSON.stringify` writes -0 as 0, too.
  if (fields.upVotes !== undefined) fields.upVotes += 0
  if (fields.downVotes !== undefined) fields.downVotes += 0
  if (fields.score !== undefined) fields.score += 0
}
