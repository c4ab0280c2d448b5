// Parses the text of a body: UTF-8, bounded nesting, JSON, and then the threads in it.
import { isUtf8 } from 'node:buffer'
import type { Fault, FaultCode } from './faults.ts'
import type { Limits } from './limits.ts'
import { createThreadParser, type ParsedThread } from './parse-thread.ts'

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
