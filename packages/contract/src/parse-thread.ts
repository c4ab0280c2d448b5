// Parses the text of a body into threads: UTF-8, bounded nesting, JSON, the schema.
import { isUtf8 } from 'node:buffer'
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import type { TSchema } from 'typebox'
import { type FaultList, NOT_AN_OBJECT, refuse } from './faults.ts'
import {
  EMPTY_IMPORT,
  exceededBound,
  type RefusedText,
  refuseSyntax,
  refuseText,
  withExternalId,
} from './refused-text.ts'
import { isRecord, normaliseThread, type PrunedRequest, parseIsoDate, pruneRequest, type Thread } from './thread.ts'
import { threadFaults } from './thread-faults.ts'
import { fieldNames, ISO_DATE, type Limits, ThreadRequestSchema, WELL_FORMED } from './thread-request.ts'
import { type Warning, withWarnings } from './warnings.ts'

/** One thread of a text. `errors` lists at most 50 faults, `total` counts all. */
export type ParsedText = { ok: true; thread: Thread; warnings?: Warning[] } | RefusedText

type ParseOptions = { strict: boolean }

/**
 * Compiles the parser once for its limits. The parser accepts any parsed JSON value and never throws. It looks at known
 * fields only, so its time is bounded by the size of the body. With `strict`, a fault is also what is otherwise ignored
 * or merged.
 */
export function createThreadParser(limits: Limits) {
  const schema = ThreadRequestSchema(limits)
  const names = fieldNames(schema)
  const isValid = createCheck<PrunedRequest>(schema)
  const maxQuotes = limits.quotes
  return (body: unknown, { strict }: ParseOptions): ParsedText => {
    if (!isRecord(body)) return refuse(NOT_AN_OBJECT)
    const unknown: number[] = []
    const request = pruneRequest(body, names, maxQuotes, unknown)
    const tooMany = Array.isArray(body.quotes) && body.quotes.length > maxQuotes
    const valid = isValid(request) && !tooMany
    const faults =
      valid && !strict
        ? NO_FAULTS
        : threadFaults({ body, request, errors: isValid.errors }, { strict, maxQuotes, names })
    const parsed: ParsedText =
      valid && faults.total === 0
        ? { ok: true, thread: normaliseThread(request) }
        : withExternalId({ ok: false, ...faults }, body)
    return unknown.length === 0 || strict ? parsed : withWarnings(parsed, body, unknown, names)
  }
}

const NO_FAULTS: FaultList = { errors: [], total: 0 }

/** A check of values by a schema. After a value that does not match, it has the faults. */
export interface Check<Value> {
  (value: unknown): value is Value
  errors?: ErrorObject[] | null
}

/**
 * Makes a check by a schema of this package. It finds every fault, with what `explainFault` needs to know of it. The
 * schema is compiled when it is first needed: most processes need few of them, and each start would pay for all.
 */
export function createCheck<Value>(schema: TSchema): Check<Value> {
  let validate: ValidateFunction<Value> | undefined
  const check: Check<Value> = (value): value is Value => {
    validate ??= createValidator().compile<Value>(schema)
    const isValid = validate(value)
    check.errors = validate.errors ?? null
    return isValid
  }
  return check
}

function createValidator(): Ajv {
  const validator = new Ajv({
    // The schemas are our own, and the tests of the API's description check them.
    validateSchema: false,
    allErrors: true,
    verbose: true,
    allowUnionTypes: true,
    formats: {
      [WELL_FORMED]: (text: string) => text.isWellFormed(),
      [ISO_DATE]: (text: string) => parseIsoDate(text) !== undefined,
    },
  })
  // Ajv's own maxLength means the same but counts every string to its end, which is half of the time of a check.
  validator.removeKeyword('maxLength')
  return validator.addKeyword({
    keyword: 'maxLength',
    type: 'string',
    schemaType: 'number',
    compile: (limit: number) => (text: string) => text.length <= limit || hasAtMost(limit, text),
  })
}

function hasAtMost(limit: number, text: string): boolean {
  // A code point has at most two code units.
  if (text.length > 2 * limit) return false
  let codePoints = 0
  for (const _ of text) codePoints++
  return codePoints <= limit
}

/** The elements of an array, each for itself. */
export type ParsedArray = { ok: true; elements: ParsedText[] } | RefusedText

/** Parses texts. It returns plain data, so that another thread can parse for this one. It never throws. */
export type TextParser = ReturnType<typeof createTextParser>

/** Compiles the parser once for its limits. */
export function createTextParser(limits: Limits) {
  const parseThread = createThreadParser(limits)
  return {
    /** Parses one thread. */
    thread(text: Buffer, options: ParseOptions): ParsedText {
      const json = parseJson(text, limits)
      return json.ok ? parseThread(json.value, options) : json
    },
    /** Parses an array of at most `maxItems` threads. */
    array(text: Buffer, { maxItems, ...options }: ParseOptions & { maxItems: number }): ParsedArray {
      const json = parseJson(text, limits)
      if (!json.ok) return json
      if (!Array.isArray(json.value)) return refuseText('type', 'The body must be a JSON array.')
      if (json.value.length === 0) return EMPTY_IMPORT
      return json.value.length > maxItems
        ? refuseText('too_many', `An array may have at most ${maxItems} items; send application/x-ndjson for more.`)
        : { ok: true, elements: json.value.map((element) => parseThread(element, options)) }
    },
  }
}

const BYTE_ORDER_MARK = '\ufeff'

/** Parses JSON text in UTF-8 within the bounds of levels and values. Never throws. */
export function parseJson(
  text: Buffer,
  limits: Pick<Limits, 'nesting' | 'jsonValues'>,
): { ok: true; value: unknown } | RefusedText {
  if (!isUtf8(text)) return refuseText('not_decodable', 'The body is not valid UTF-8.')
  const isSmall = text.length <= limits.nesting && text.length <= limits.jsonValues
  const exceeded = isSmall ? undefined : exceededBound(text, limits)
  if (exceeded === 'nesting')
    return refuseText('nesting_too_deep', `The body must not nest deeper than ${limits.nesting} levels.`)
  if (exceeded === 'jsonValues')
    return refuseText('too_many', `The body may have at most ${limits.jsonValues} JSON values (jsonValues).`)
  const json = text.toString('utf8')
  try {
    return { ok: true, value: JSON.parse(json.startsWith(BYTE_ORDER_MARK) ? json.slice(1) : json) }
  } catch (error) {
    return refuseSyntax(error, json)
  }
}
