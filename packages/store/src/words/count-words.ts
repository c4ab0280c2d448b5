/**
 * Counts the words of one text: the word-like segments of `Intl.Segmenter('en', { granularity: 'word' })`. ASCII text
 * takes a fast path that counts the same.
 */

const segmenter = new Intl.Segmenter('en', { granularity: 'word' })

// One bit for each kind of character that words are made of (UAX #29). Every other character has none.
const LETTER = 1
const DIGIT = 2
const UNDERSCORE = 4

const ASCII = 128
const KINDS = new Uint8Array(ASCII)
// A character joins two neighbours into one word if both are of one of these kinds (WB6, WB7, WB11, WB12).
const JOINS = new Uint8Array(ASCII)

fill(KINDS, LETTER, 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz')
fill(KINDS, DIGIT, '0123456789')
fill(KINDS, UNDERSCORE, '_')
fill(JOINS, LETTER, ':')
fill(JOINS, DIGIT, ',;')
fill(JOINS, LETTER | DIGIT, ".'")

/**
 * Counts the words of a text in any script. Blocks the event loop for seconds on megabytes of a script without spaces:
 * use `countWordsAsync` for texts that callers send.
 */
export function countWords(text: string): number {
  return countAsciiWords(text) ?? countSegments(text)
}

/**
 * Counts the words of an ASCII text, over ten times as fast as the segmenter. Returns undefined if the text has any
 * other character, because only the segmenter knows the rules for those.
 */
export function countAsciiWords(text: string): number | undefined {
  let words = 0
  let inWord = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code >= ASCII) return undefined
    const kind = KINDS[code] ?? 0
    if (kind !== 0 && !inWord && !(kind === UNDERSCORE && kindAt(text, at + 1) === 0)) words++ // a lone _ is no word
    inWord = kind !== 0 || (inWord && joins(code, text, at))
  }
  return words
}

/** Returns the segments of a text, found one by one on demand. Finding one can take 20 ms. */
export function segmentsOf(text: string): Iterable<Intl.SegmentData> {
  return segmenter.segment(text)
}

function countSegments(text: string): number {
  let words = 0
  for (const { isWordLike } of segmentsOf(text)) if (isWordLike) words++
  return words
}

function joins(code: number, text: string, at: number): boolean {
  return ((JOINS[code] ?? 0) & kindAt(text, at - 1) & kindAt(text, at + 1)) !== 0
}

function kindAt(text: string, at: number): number {
  return KINDS[text.charCodeAt(at)] ?? 0
}

function fill(table: Uint8Array, value: number, characters: string): void {
  for (const character of characters) table[character.charCodeAt(0)] = value
}
