// Distinguishes what WhatsApp wrote from what people wrote, by its sentences, if a file does not
// show it in another way.
import { withoutTypography } from '../values/typography.ts'
import languages from './sentences.json' with { type: 'json' }

/**
 * For each language: what replaces a deleted message or a missed call, the mark of an edited
 * message, and what is between an actor and the name of a group.
 */
const SENTENCES = Object.values(languages).map((line) =>
  line.split(' ; ').map((part) => part.split('|')),
)
const setOf = (column: number) => new Set(SENTENCES.flatMap((parts) => parts[column] ?? []))
const [INSTEAD, EDITED] = [setOf(0), setOf(1)]
const ACTS = new RegExp([...setOf(2)].map((act) => act.replaceAll(/[()/]/g, '\\$&')).join('|'))
const LONGEST_SENTENCE = 80

/** Some languages close a quotation with the mark with which others open one. */
const QUOTES = /["„“”«»「」『』]/g
const OPENED = /(?<![\da-z])(?:["„“”「『](?=\S)|«)[^"„“”«»「」『』]*$/i

/** Returns whether a text replaces a message or a call. */
export function isInstead(text: string): boolean {
  return text.length <= LONGEST_SENTENCE && INSTEAD.has(sentenceIn(text))
}

/** Returns a text without the mark of an edited message, `<This message was edited>`. */
export function withoutEdited(text: string): string {
  const start = text.endsWith('>') ? text.lastIndexOf('<') : -1
  return start !== -1 && EDITED.has(sentenceIn(text.slice(start + 1, -1)))
    ? text.slice(0, start).trimEnd()
    : text
}

function sentenceIn(text: string): string {
  return withoutTypography(text)
    .trim()
    .replace(/[.。।۔]$/, '')
}

/** Whether name and text are parts of a notice, such as `Ana created group "Trip: Rome"`. */
export function isNotice(name: string, text: string): boolean {
  if (ACTS.test(name)) return true
  const quotes = name.match(QUOTES)?.length ?? 0
  return quotes % 2 === 1 && OPENED.test(name) && text.search(QUOTES) !== -1
}
