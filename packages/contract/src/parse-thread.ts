// Parses the text of a body into threads: UTF-8, bounded nesting, JSON, the schema. It returns each normalised thread, or the list of its faults.
import { isUtf8 } from 'node:buffer'
import { Ajv, type ValidateFunction } from 'ajv'
import {
  addFault,
  explainFault,
  type Fault,
  type FaultCode,
  type FaultList,
  NOT_AN_OBJECT,
  repeatsType,
  tooManyQuotes,
} from './faults.ts'
import type { Limits } from './limits.ts'
import { addStrictFaults, type FieldNames, type QuotePair } from './strict-faults.ts'
import { normaliseThread, type PrunedRequest, parseIsoDate, type Thread } from './thread.ts'
import { ISO_DATE, ThreadRequestSchema, WELL_FORMED } from './thread-request.ts'
import { SOURCE, type Warning, warningsOf } from './warnings.ts'

/** `errors` lists at most 50 faults, `total` counts all. No `warnings`: no unknown field looks like a known one. */
export type ParsedThread = ({ ok: true; thread: Thread } | { ok: false; errors: Fault[]; total: number }) & {
  warnings?: Warning[]
}

export type ParseThread = (body: unknown, options: { strict: boolean }) => ParsedThread

/**
 * Compiles the parser once for its limits. The parser accepts any parsed JSON value and never throws. It looks at known
 * fields only, so its time is bounded by the size of the body. With `strict`, a fault is also what is otherwise ignored
 * or merged.
 */
export function createThreadParser(limits: Limits): ParseThread {
  const schema = ThreadRequestSchema(limits)
  const names = {
    source: Object.keys(schema.properties),
    quote: Object.keys(schema.properties.quotes.items.properties),
  }
  const isValid = createValidator().compile<PrunedRequest>(schema)
  return (body, { strict }) => parseThread(body, strict, limits.quotes, names, isValid)
}

function parseThread(
  body: unknown,
  strict: boolean,
  maxQuotes: number,
  names: FieldNames,
  isValid: ValidateFunction<PrunedRequest>,
): ParsedThread {
  if (!isRecord(body)) return { ok: false, errors: [NOT_AN_OBJECT], total: 1 }
  const faults: FaultList = { errors: [], total: 0 }
  const unknown: number[] = []
  const request: unknown = pruneRequest(body, names, maxQuotes, unknown)
  const { quotes } = body
  if (Array.isArray(quotes) && quotes.length > maxQuotes)
    addFault(faults, () => tooManyQuotes(quotes.length, maxQuotes))
  const valid = isValid(request)
  for (const error of isValid.errors ?? []) {
    if (!repeatsType(error)) addFault(faults, () => explainFault(error))
  }
  if (strict) addStrictFaults(faults, body, quotePairs(body, request), names)
  const parsed: ParsedThread =
    valid && faults.total === 0 ? { ok: true, thread: normaliseThread(request) } : { ok: false, ...faults }
  return unknown.length === 0 || strict ? parsed : withWarnings(parsed, warningsOf(body, unknown, names))
}

function withWarnings(parsed: ParsedThread, warnings: Warning[]): ParsedThread {
  return warnings.length === 0 ? parsed : { ...parsed, warnings }
}

/**
 * Copies the known fields of a request that are neither null nor blank, in the order of the schema. It never looks into a
 * value of the wrong type, so unknown fields cost nothing. Quotes keep their indexes. If there are more than
 * `maxQuotes`, all are left out.
 *
 * @param unknown receives the places of the quotes that have unknown fields, and `SOURCE`.
 */
function pruneRequest(
  body: Record<string, unknown>,
  names: FieldNames,
  maxQuotes: number,
  unknown: number[],
): Record<string, unknown> {
  const request = pruneFields(body, names.source, unknown, SOURCE)
  const { quotes } = request
  if (Array.isArray(quotes)) request.quotes = quotes.length > maxQuotes ? [] : pruneQuotes(quotes, names.quote, unknown)
  return request
}

function pruneQuotes(quotes: unknown[], names: readonly string[], unknown: number[]): unknown[] {
  return quotes.map((quote, at) => (isRecord(quote) ? pruneFields(quote, names, unknown, at) : quote))
}

function pruneFields(
  input: Record<string, unknown>,
  names: readonly string[],
  unknown: number[],
  at: number,
): Record<string, unknown> {
  const pruned: Record<string, unknown> = {}
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

/** The quotes that are objects, each as it was sent and pruned. */
function quotePairs(body: Record<string, unknown>, request: unknown): QuotePair[] {
  if (!isRecord(request) || !Array.isArray(request.quotes)) return []
  const { quotes } = body
  return request.quotes.flatMap((pruned: unknown, index) => {
    const sent: unknown = Array.isArray(quotes) ? quotes[index] : undefined
    return isRecord(pruned) && isRecord(sent) ? [{ index, sent, pruned }] : []
  })
}

/** Whether a parsed JSON value is an object: neither an array nor null. */
function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A validator for this package's schemas. It finds every fault, with what `explainFault` needs to know of it. */
export function createValidator(): Ajv {
  const validator = new Ajv({
    allErrors: true,
    verbose: true,
    allowUnionTypes: true,
    formats: {
      [WELL_FORMED]: (text: string) => text.isWellFormed(),
      [ISO_DATE]: (text: string) => parseIsoDate(text) !== undefined,
    },
  })
  // Ajv's own maxLength means the same but counts every string to its end, which takes half of the time of a check.
  validator.removeKeyword('maxLength')
  return validator.addKeyword({
    keyword: 'maxLength',
    type: 'string',
    schemaType: 'number',
    compile: (limit: number) => (text: string) => text.length <= limit || hasAtMost(limit, text),
  })
}

function hasAtMost(limit: number, text: string): boolean {
  // A code point takes at most two code units.
  if (text.length > 2 * limit) return false
  let codePoints = 0
  for (const _ of text) codePoints++
  return codePoints <= limit
}

/** Text that can't be accepted, with its `externalId` if that could be read. */
export type RefusedText = Extract<ParsedThread, { ok: false }> & { externalId?: string }

/** One thread of a text. */
export type ParsedText = Extract<ParsedThread, { ok: true }> | RefusedText

/** The elements of an array, each for itself. */
export type ParsedArray = { ok: true; elements: ParsedText[] } | RefusedText

/** Parses texts. It returns plain data, so that another thread can parse for this one. It never throws. */
export interface TextParser {
  /** Parses one thread. */
  thread(text: Buffer, options: ParseOptions): ParsedText
  /** Parses an array of at most `maxItems` threads. */
  array(text: Buffer, options: ParseOptions & { maxItems: number }): ParsedArray
}

type ParseOptions = { strict: boolean }

/** Compiles the parser once for its limits. */
export function createTextParser(limits: Limits): TextParser {
  const parseThread = createThreadParser(limits)
  function parseValue(value: unknown, options: ParseOptions): ParsedText {
    const parsed = parseThread(value, options)
    return parsed.ok ? parsed : { ...parsed, ...externalIdIn(value) }
  }
  return {
    thread(text, options) {
      const json = parseJson(text, limits.nesting)
      return json.ok ? parseValue(json.value, options) : json
    },
    array(text, { maxItems, ...options }) {
      const json = parseJson(text, limits.nesting)
      if (!json.ok) return json
      if (!Array.isArray(json.value)) return refuse('type', 'The body must be a JSON array.')
      if (json.value.length === 0) return EMPTY_IMPORT
      if (json.value.length > maxItems)
        return refuse('too_many', `An array may have at most ${maxItems} items; send application/x-ndjson for more.`)
      return { ok: true, elements: json.value.map((element) => parseValue(element, options)) }
    },
  }
}

const BYTE_ORDER_MARK = '\ufeff'

/** Parses JSON text in UTF-8 that nests at most so deep. Never throws. */
export function parseJson(text: Buffer, maxNesting: number): { ok: true; value: unknown } | RefusedText {
  if (!isUtf8(text)) return refuse('not_decodable', 'The body is not valid UTF-8.')
  if (nestsDeeper(text, maxNesting))
    return refuse('nesting_too_deep', `The body must not nest deeper than ${maxNesting} levels.`)
  const json = text.toString('utf8')
  try {
    return { ok: true, value: JSON.parse(json.startsWith(BYTE_ORDER_MARK) ? json.slice(1) : json) }
  } catch (error) {
    return refuse('not_json', json.trim() === '' ? 'The body is empty.' : explainSyntax(error, json))
  }
}

function refuse(code: FaultCode, message: string): RefusedText {
  const fault: Fault = { pointer: '', code, message }
  return { ok: false, errors: [fault], total: 1 }
}

/** The import has no item. */
export const EMPTY_IMPORT = refuse('required', 'The import is empty: send at least one source.')

/** Tells a caller of curl that its import arrived as one line. */
export const NEWLINES =
  'An import has one source a line; with curl, send it by --data-binary, because -d removes the newlines.'

/** Only the place of V8's message is repeated: the rest repeats the body. */
function explainSyntax(error: unknown, json: string): string {
  const { message = '' } = error instanceof Error ? error : {}
  const [place, position] = /at position (\d+)(?: \(line \d+ column \d+\))?/.exec(message) ?? []
  const isSecondObject = message.includes('after JSON') && json[Number(position)] === '{'
  const hint = isSecondObject ? ` Another object follows the first. ${NEWLINES}` : ''
  return `The body is not valid JSON${place === undefined ? '' : ` ${place}`}.${hint}`
}

/** Enough to find the thread by. A longer text is no externalId. */
const EXTERNAL_ID_LENGTH = 512

function externalIdIn(value: unknown): { externalId?: string } {
  if (typeof value !== 'object' || value === null || !('externalId' in value)) return {}
  const { externalId } = value
  return typeof externalId === 'string' && externalId.length <= EXTERNAL_ID_LENGTH ? { externalId } : {}
}

const OBJECT = 0x7b
const OBJECT_END = 0x7d
const ARRAY = 0x5b
const ARRAY_END = 0x5d
const QUOTE = 0x22
const BACKSLASH = 0x5c

/**
 * Whether the arrays and objects of a JSON text nest deeper than this. Takes time in proportion to the text, where parsing
 * 10 MiB of `[` takes a second. Most texts have fewer brackets than levels are allowed, which is quick to tell.
 */
function nestsDeeper(text: Buffer, levels: number): boolean {
  return hasMoreBrackets(text, levels) && reachesBelow(text, levels)
}

function hasMoreBrackets(text: Buffer, count: number): boolean {
  if (text.length <= count) return false
  let seen = 0
  for (const bracket of [OBJECT, ARRAY]) {
    for (let at = text.indexOf(bracket); at !== -1; at = text.indexOf(bracket, at + 1)) {
      seen += 1
      if (seen > count) return true
    }
  }
  return false
}

function reachesBelow(text: Buffer, levels: number): boolean {
  let depth = 0
  let inString = false
  for (let at = 0; at < text.length; at++) {
    const byte = text[at]
    if (inString) {
      if (byte === BACKSLASH) at += 1
      else if (byte === QUOTE) inString = false
    } else if (byte === QUOTE) inString = true
    else if (byte === OBJECT || byte === ARRAY) {
      depth += 1
      if (depth > levels) return true
    } else if (byte === OBJECT_END || byte === ARRAY_END) depth -= 1
  }
  return false
}
