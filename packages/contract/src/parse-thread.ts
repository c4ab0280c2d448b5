// Parses a request's JSON value: checks it against the schema and returns a normalised thread, or the list of its faults.
import { Ajv, type ValidateFunction } from 'ajv'
import {
  addFault,
  explainFault,
  type Fault,
  type FaultList,
  NOT_AN_OBJECT,
  pointerTo,
  repeatsType,
  tooManyQuotes,
} from './faults.ts'
import type { Limits } from './limits.ts'
import { addStrictFaults, type FieldNames, type QuotePair } from './strict-faults.ts'
import { normaliseThread, type PrunedRequest, parseIsoDate, type Thread } from './thread.ts'
import { ISO_DATE, ThreadRequestSchema, WELL_FORMED } from './thread-request.ts'
import { type UnknownFields, type Warning, warningsOf } from './warnings.ts'

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
  const unknown: Unknown = []
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
  return unknown.length === 0 || strict ? parsed : withWarnings(parsed, warningsOf(withUnknown(body, unknown), names))
}

/** The objects with unknown fields: places of quotes, and `SOURCE`. */
type Unknown = number[]

const SOURCE = -1

function* withUnknown(body: Record<string, unknown>, unknown: Unknown): Generator<UnknownFields> {
  for (const at of unknown) {
    const quote: unknown = Array.isArray(body.quotes) ? body.quotes[at] : undefined
    if (at === SOURCE) yield { sent: body, parent: '', of: 'source' }
    else if (isRecord(quote)) yield { sent: quote, parent: pointerTo('/quotes', at), of: 'quote' }
  }
}

function withWarnings(parsed: ParsedThread, warnings: Warning[]): ParsedThread {
  return warnings.length === 0 ? parsed : { ...parsed, warnings }
}

/**
 * Copies the known fields of a request that are neither null nor blank, in the order of the schema. It never looks into a
 * value of the wrong type, so unknown fields cost nothing. Quotes keep their indexes. If there are more than
 * `maxQuotes`, all are left out.
 *
 * @param unknown receives the places of the objects that have unknown fields.
 */
function pruneRequest(
  body: Record<string, unknown>,
  names: FieldNames,
  maxQuotes: number,
  unknown: Unknown,
): Record<string, unknown> {
  const request = pruneFields(body, names.source, unknown, SOURCE)
  const { quotes } = request
  if (Array.isArray(quotes)) request.quotes = quotes.length > maxQuotes ? [] : pruneQuotes(quotes, names.quote, unknown)
  return request
}

function pruneQuotes(quotes: unknown[], names: readonly string[], unknown: Unknown): unknown[] {
  return quotes.map((quote, at) => (isRecord(quote) ? pruneFields(quote, names, unknown, at) : quote))
}

function pruneFields(
  input: Record<string, unknown>,
  names: readonly string[],
  unknown: Unknown,
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
