import { countAsciiWords } from './count-ascii-words.ts'

const segmenter = new Intl.Segmenter('en', { granularity: 'word' })

/**
 * How many words a text has, in any script: the word-like segments of `Intl.Segmenter('en', { granularity: 'word' })`.
 * Takes seconds for megabytes of a script without spaces: `countWordsAsync` is for texts that callers send.
 */
export function countWords(text: string): number {
  return countAsciiWords(text) ?? countSegments(text)
}

/** The segments of a text, found one by one as they are asked for; a single one can take 20 ms to find. */
export function segmentsOf(text: string): Iterable<Intl.SegmentData> {
  return segmenter.segment(text)
}

function countSegments(text: string): number {
  let words = 0
  for (const { isWordLike } of segmentsOf(text)) if (isWordLike) words++
  return words
}
