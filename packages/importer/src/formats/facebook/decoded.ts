// Facebook escapes each byte of a UTF-8 text as if it were a character: `\u00c3\u00a9` for é. It
// refers to people by ids.
import { isUtf8 } from 'node:buffer'
import { isRecord } from '@sluice/contract'

/** Nothing that is read nests deeper. A deeper record would exceed the stack. */
const DEEPEST = 10

/**
 * Decodes the texts of a value, including those in lists and objects. Leaves a text as it is if it
 * is not escaped in this way.
 */
export function decoded(value: unknown, depth = DEEPEST): unknown {
  if (typeof value === 'string') return decodedText(value)
  if (depth === 0) return value
  if (Array.isArray(value)) return value.map((one) => decoded(one, depth - 1))
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [name, decoded(one, depth - 1)]),
  )
}

/** Matches a mention of a person, by an id and a name: `@[100001:2048:Ada]`. */
const MENTION = /@\[\d{1,20}:\d{1,20}:([^\]\n]{1,100})\]/g

function decodedText(text: string): string {
  const plain = unescaped(text)
  return plain.includes('@[') ? plain.replace(MENTION, '$1') : plain
}

function unescaped(text: string): string {
  if (!/[\x80-\xff]/.test(text) || /[^\0-\xff]/.test(text)) return text
  const bytes = Buffer.from(text, 'latin1')
  return isUtf8(bytes) ? bytes.toString('utf8') : text
}
