// Fits texts into the bounds of the API: makes them well-formed, cuts or splits them, and shortens
// ids.
import { digestOf } from '../formats/values/digest.ts'

/** Returns whether a text has at most `limit` code points. */
export function fits(text: string, limit: number): boolean {
  return text.length <= limit || endOf(text, limit) === text.length
}

/** Returns the first `limit` code points of a text. If it was cut, the last one is an ellipsis. */
export function cut(text: string, limit: number): string {
  return fits(text, limit) ? text : `${text.slice(0, endOf(text, limit - 1))}…`
}

/** White space is searched for in this number of characters before the bound. */
const WORD_SEARCH = 200

/** Splits a text at `limit` code points, if possible after white space. No part is blank. */
export function split(text: string, limit: number): string[] {
  const parts: string[] = []
  for (let rest = text; rest !== ''; ) {
    const end = fits(rest, limit) ? rest.length : wordEnd(rest, endOf(rest, limit))
    parts.push(rest.slice(0, end))
    rest = rest.slice(end)
  }
  return parts.filter((part) => part.trim() !== '')
}

function wordEnd(text: string, end: number): number {
  for (let at = end; at > Math.max(end / 2, end - WORD_SEARCH); at--) {
    if (/\s/.test(text[at - 1] ?? '')) return at
  }
  return end
}

/** Returns the index after the first `count` code points, or the length of the text. */
function endOf(text: string, count: number): number {
  let at = 0
  for (let left = count; left > 0 && at < text.length; left--)
    at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1
  return at
}

const LONGEST_ID = 512
const KEPT_OF_ID = 440

/**
 * Shortens an id of more than 512 code points to its first 440, `~`, and its SHA-256 in base64url.
 * The bound does not depend on a server's settings, so that the same record always has the same id.
 */
export function boundedId(id: string): string {
  if (fits(id, LONGEST_ID)) return id
  return `${id.slice(0, endOf(id, KEPT_OF_ID))}~${digestOf(id)}`
}
