// The digest by which long or missing ids are replaced, and contents are compared.
import { createHash } from 'node:crypto'

/** Returns the SHA-256 of a text in base64url. */
export function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}
