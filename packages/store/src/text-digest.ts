// Tells whether a text changed without the stored text: a quote keeps the length and the hash of its text.
import { hash } from 'node:crypto'
import type { QuoteWithoutText } from './documents.ts'

/** 96 bits: equal lengths and hashes of different texts do not occur by chance. A tenant that makes them harms its own quotes only. */
const HASH_LENGTH = 16
/** A tool that changed a text has removed its digest. The text is as long as the contract allows by default. */
const LONGEST = 100_000

/** The text of a stored quote that was not read, because a newer request replaces it. No request gives an empty text. */
export const REPLACED = ''

/** Returns the digest of a text: its length in UTF-16 units, and a hash. */
export function textDigestOf(text: string): string {
  return `${text.length}.${hash('sha256', text, 'base64url').slice(0, HASH_LENGTH)}`
}

/** Returns whether the stored quote has this text. Never true for a quote without a digest. */
export function hasText({ meta: { textDigest } }: QuoteWithoutText, text: string): boolean {
  return textDigest?.startsWith(`${text.length}.`) === true && textDigest === textDigestOf(text)
}

/** Returns the length of the stored text, or the longest one for a quote without a digest. */
export function textLengthOf({ meta: { textDigest } }: QuoteWithoutText): number {
  return textDigest === undefined ? LONGEST : Number.parseInt(textDigest, 10)
}
