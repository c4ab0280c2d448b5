import { countAsciiWords } from './count-ascii-words.ts'
import { segmentsOf } from './count-words.ts'
import { createSlices, SLICE_MS, type Slices } from './slices.ts'

/** Looking at the clock costs as much as a short text: so many characters of ASCII take some 20 µs. */
const CHECK_EVERY = 5_000

const sharedSlices = createSlices(SLICE_MS)

/**
 * Counts the words of each text as `countWords` does, without ever holding the event loop for more than 50 ms, however
 * many texts there are and however many such counts run at once. Each text may have as many characters as a quote.
 */
export async function countWordsAsync(
  texts: string[],
  { slices = sharedSlices }: { slices?: Slices } = {},
): Promise<number[]> {
  const counts: number[] = []
  let unchecked = CHECK_EVERY
  for (const text of texts) {
    unchecked += text.length
    if (unchecked >= CHECK_EVERY) {
      if (!slices.hasTime()) await slices.nextTurn()
      unchecked = 0
    }
    counts.push(countAsciiWords(text) ?? (await countSegments(text, slices)))
  }
  return counts
}

// One iterator over all slices of a text, because a text that is cut has other words.
async function countSegments(text: string, slices: Slices): Promise<number> {
  let words = 0
  for (const { isWordLike } of segmentsOf(text)) {
    if (isWordLike) words++
    if (!slices.hasTime()) await slices.nextTurn()
  }
  return words
}
