// Makes digests, which replace long or missing ids, and by which contents are compared.
import * as crypto from 'node:crypto'

/** Returns the SHA-256 of a text in base64url. */
export function digestOf(text: string): string {
  // Node before 20.12 lacks the function that makes a digest in half the time.
  const digest = crypto.hash?.('sha256', text, 'base64url')
  return digest ?? crypto.createHash('sha256').update(text).digest('base64url')
}

/** This number of characters of a digest distinguishes records with the same moment and author. */
const DIGEST_CHARACTERS = 8

/**
 * Makes an id for a record without one. It does not depend on the order of files.
 * @param start what nearly identifies the record, such as its moment and author.
 * @param content distinguishes records that were written in the same moment.
 */
export function madeId(start: string, content: string): string {
  return `${start}-${digestOf(content).slice(0, DIGEST_CHARACTERS)}`
}
