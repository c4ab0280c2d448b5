// The digest by which long or missing ids are replaced, and contents are compared.
import { createHash } from 'node:crypto'

/** Returns the SHA-256 of a text in base64url. */
export function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

/** Enough characters of a digest to tell records of one moment and author apart. */
const DIGEST_CHARACTERS = 8

/**
 * Makes the id of a record that has none. `start` is what identifies it nearly, such as its moment
 * and author. The digest of its content keeps apart what was written in the same moment, in
 * whatever order files have it.
 */
export function madeId(start: string, content: string): string {
  return `${start}-${digestOf(content).slice(0, DIGEST_CHARACTERS)}`
}
