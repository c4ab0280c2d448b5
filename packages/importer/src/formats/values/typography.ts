// Removes invisible and typographic characters that programs add to names and dates, and nobody
// typed.
import { asText } from './record-fields.ts'

/** Byte order marks, and marks for the direction of writing, but not joiners in emoji. */
export const MARKS = String.raw`[\uFEFF\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]*`
const ALL_MARKS = new RegExp(MARKS, 'g')
const SPACES = /[\u00A0\u2007\u202F]/g
/** iPhones write telephone numbers with this hyphen, which prevents a line break. */
const HYPHEN = /\u2011/g
/** Matches any of these characters. Most texts have none, and need no search for each kind. */
const ANY = /[\u00A0\u061C\u2007-\u206F\uFEFF]/

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
