// Refuses a text that is not the JSON that the contract requires, and says why.

import type { Warning } from './leniency.ts'
import type { Limits } from './thread-request.ts'
import { type Invalid, refuseText } from './validation-errors.ts'

/** A text that can't be accepted, with its `externalId` if that could be read. */
export type InvalidText = Invalid & { warnings?: Warning[]; externalId?: string }

export const EMPTY_IMPORT = refuseText('required', 'The import is empty: send at least one source.')

export const NEWLINES =
  'An import has one source a line; with curl, send it by --data-binary, because -d removes the newlines.'

/**
 * Refuses a text that `JSON.parse` has refused. Repeats only the place from V8's message, because
 * the rest of the message quotes the body.
 */
export function refuseSyntax(error: unknown, json: string): InvalidText {
  if (json.trim() === '') return refuseText('not_json', 'The body is empty.')
  const message = String(error)
  const position = Number(/at position (\d+)/.exec(message)?.[1] ?? positionOfToken(json))
  const isSecondObject = message.includes('after JSON') && json[position] === '{'
  const hint = isSecondObject ? ` Another object follows the first. ${NEWLINES}` : ''
  return refuseText('not_json', `The body is not valid JSON ${placeOf(json, position)}.${hint}`)
}

/** V8 quotes this number of characters before and after an unexpected token. */
const QUOTED_AROUND = 10
const PADDING = ' '.repeat(QUOTED_AROUND)

/**
 * Returns the position of an unexpected token, which V8 only quotes. The padding makes it quote as
 * much as it can, so that the same text does not stand further ahead, except within a string.
 */
function positionOfToken(json: string): number {
  const padded = PADDING + json + PADDING
  try {
    JSON.parse(padded)
  } catch (error) {
    const quoted = /\.\.\."(.*)"\.\.\./s.exec(String(error))?.[1]
    if (quoted !== undefined) return padded.indexOf(quoted)
  }
  return json.length
}

/** Names a place in V8's words. */
function placeOf(json: string, position: number): string {
  const before = json.slice(0, position)
  const column = position - before.lastIndexOf('\n')
  return `at position ${position} (line ${before.split('\n').length} column ${column})`
}

/** A refusal repeats an externalId of at most this length, so that the sender finds the thread. */
const EXTERNAL_ID_LENGTH = 512

/** Adds the `externalId` of a refused thread, if it has one. */
export function withExternalId(
  refused: InvalidText,
  { externalId }: Record<string, unknown>,
): InvalidText {
  const isShort = typeof externalId === 'string' && externalId.length <= EXTERNAL_ID_LENGTH
  return isShort ? { ...refused, externalId } : refused
}

const OBJECT = 0x7b
const OBJECT_END = 0x7d
const ARRAY = 0x5b
const ARRAY_END = 0x5d
const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const SPACE = 0x20

/** The bounds of a JSON text: its levels of arrays and objects, and its number of values. */
export type JsonBounds = Pick<Limits, 'nesting' | 'jsonValues'>

/**
 * Refuses a JSON text that exceeds a bound, by a cheap scan: `JSON.parse` would need a second for
 * 10 MiB of `[`, and 850 MB for three million empty objects.
 */
export function refuseBeyondBounds(
  text: Buffer,
  { nesting, jsonValues }: JsonBounds,
): InvalidText | undefined {
  let depth = 0
  let values = 1
  let inString = false
  let isOpened = false
  for (let at = 0; at < text.length; at++) {
    const byte = text[at] ?? 0
    if (inString) {
      if (byte === BACKSLASH) at += 1
      else if (byte === QUOTE) inString = false
      continue
    }
    if (byte <= SPACE) continue
    const isEnd = byte === OBJECT_END || byte === ARRAY_END
    // A value is announced by a comma, or by the first byte within an array or object.
    if (byte === COMMA || (isOpened && !isEnd)) values += 1
    if (values > jsonValues)
      return refuseText(
        'too_many',
        `The body may have at most ${jsonValues} JSON values (jsonValues).`,
      )
    isOpened = byte === OBJECT || byte === ARRAY
    if (byte === QUOTE) inString = true
    else if (isEnd) depth -= 1
    else if (isOpened) depth += 1
    if (depth > nesting)
      return refuseText('nesting_too_deep', `The body must not nest deeper than ${nesting} levels.`)
  }
  return undefined
}
