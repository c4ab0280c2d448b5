// Removes invisible and typographic characters that programs add to names and dates, and nobody
// typed.
import { asText } from './record-fields.ts'

/** Marks of byte order, width zero, and the direction of writing, but not joiners in emoji. */
export const MARKS = String.raw`\uFEFF\u061C\u200B\u200E\u200F\u202A-\u202E\u2060\u2066-\u2069`
const ALL_MARKS = new RegExp(`[${MARKS}]+`, 'g')
const SPACES = /[\u00A0\u2000-\u200A\u202F\u205F]/g
/** iPhones write telephone numbers with a hyphen that prevents a line break. */
const HYPHEN = /[\u2010\u2011]/g
/** Matches any of these characters. Most texts have none, and need no search for each kind. */
const ANY = /[\u00A0\u061C\u2000-\u2011\u202A-\u202F\u205F-\u2069\uFEFF]/

/** Returns a text without invisible marks, and with plain spaces and hyphens. */
export function withoutTypography(text: string): string {
  return ANY.test(text)
    ? text.replace(ALL_MARKS, '').replace(SPACES, ' ').replace(HYPHEN, '-')
    : text
}

/** Decodes the entities that Reddit and X write for `<`, `>` and `&`. */
export function withoutEntities(text: string): string {
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
}

/**
 * Returns a person's name in one spelling, so that the same person always has the same name.
 * Returns undefined if the value is no name.
 */
export function asName(value: unknown): string | undefined {
  const text = asText(value)
  return text === undefined ? undefined : asText(withoutTypography(text).trim())
}
