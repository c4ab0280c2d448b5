// Removes what programs write around names and dates, and what nobody typed.
import { asText } from './record-fields.ts'

/**
 * Byte order marks, and marks of the direction of writing. The joiners within emoji and words are
 * none of them.
 */
export const MARKS = String.raw`[\uFEFF\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]*`
const ALL_MARKS = new RegExp(MARKS, 'g')
const SPACES = /[\u00A0\u2007\u202F]/g
/** iPhones write telephone numbers with this hyphen, at which no line breaks. */
const HYPHEN = /\u2011/g
/** Most texts have none of these characters, and need no search for each kind. */
const ANY = /[\u00A0\u061C\u2007-\u206F\uFEFF]/

/** Returns a name, a number or a date without invisible marks, with plain spaces and hyphens. */
export function withoutTypography(text: string): string {
  return ANY.test(text)
    ? text.replace(ALL_MARKS, '').replace(SPACES, ' ').replace(HYPHEN, '-')
    : text
}

/** Returns the name of a person, so that one person stays one, or undefined if it is none. */
export function asName(value: unknown): string | undefined {
  const text = asText(value)
  return text === undefined ? undefined : asText(withoutTypography(text).trim())
}
