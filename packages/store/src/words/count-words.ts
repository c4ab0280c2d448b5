// Counts words (the word-like segments of a segmenter) in slices of time, between which the event
// loop runs. A fast path for ASCII texts has the same results.

// One bit for each kind of character that words consist of (UAX #29). All other characters have
// none.
const LETTER = 1
const DIGIT = 2
const UNDERSCORE = 4

const ASCII = 128
const KINDS = new Uint8Array(ASCII)
// For each character that can join its two neighbours into one word: the kinds that it joins. Both
// neighbours must be of the same kind (WB6, WB7, WB11, WB12).
const JOINS = new Uint8Array(ASCII)

fill(KINDS, LETTER, 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz')
fill(KINDS, DIGIT, '0123456789')
fill(KINDS, UNDERSCORE, '_')
fill(JOINS, LETTER, ':')
fill(JOINS, DIGIT, ',;')
fill(JOINS, LETTER | DIGIT, ".'")

/**
 * Counts the words of an ASCII text, more than ten times as fast as the segmenter. Returns
 * undefined if the text is not ASCII.
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

function joins(code: number, text: string, at: number): boolean {
  return ((JOINS[code] ?? 0) & kindAt(text, at - 1) & kindAt(text, at + 1)) !== 0
}

function kindAt(text: string, at: number): number {
  return KINDS[text.charCodeAt(at)] ?? 0
}

function fill(table: Uint8Array, value: number, characters: string): void {
  for (const character of characters) table[character.charCodeAt(0)] = value
}

// The clock is read after this number of characters (about 20 µs of ASCII), because reading it
// costs as much as a short text.
const CHECK_EVERY = 5_000

/**
 * Counts the words of each text. Never blocks the event loop for more than 50 ms, even if many
 * counts run at the same time.
 */
export async function countWords(texts: readonly string[], slices: Slices): Promise<number[]> {
  const counts: number[] = []
  let unchecked = 0
  for (const text of texts) {
    unchecked += text.length
    if (unchecked >= CHECK_EVERY) {
      if (!slices.hasTime()) await slices.nextSlice()
      unchecked = 0
    }
    counts.push(countAsciiWords(text) ?? (await countSegments(text, slices)))
  }
  return counts
}

const segmenter = new Intl.Segmenter('en', { granularity: 'word' })

/**
 * A slice blocks the event loop for at most 50 ms: for `SLICE_MS`, and for a step that begins just
 * before its end. A step takes at most 20 ms (the segmenter, on 100,000 characters of Chinese or
 * Japanese).
 */
export const SLICE_MS = 10

/** Divides time into slices. All work that uses the same `Slices` shares the time of each slice. */
export type Slices = ReturnType<typeof createSlices>

/** Creates slices of `sliceMs` milliseconds by the clock `now`, which returns milliseconds. */
export function createSlices(sliceMs: number, now: () => number = () => performance.now()) {
  const waiting: (() => void)[] = []
  let deadline: number | undefined

  function startSlice(): void {
    deadline = undefined
    waiting.shift()?.()
    if (waiting.length > 0) openSlice()
  }

  function openSlice(): number {
    setImmediate(startSlice)
    deadline = now() + sliceMs
    return deadline
  }

  return {
    /** Returns whether the current slice has time left. Ask before each step. */
    hasTime: () => now() < (deadline ?? openSlice()),
    /**
     * Resolves in a later iteration of the event loop. Callers are served in the order of their
     * calls, one in each iteration.
     */
    nextSlice(): Promise<void> {
      if (deadline === undefined) openSlice()
      return new Promise((resolve) => waiting.push(resolve))
    },
  }
}

/**
 * Counts the words of a text. All slices use one iterator, because a text that is cut in two has
 * other words.
 */
async function countSegments(text: string, slices: Slices): Promise<number> {
  let words = 0
  for (const { isWordLike } of segmenter.segment(text)) {
    if (isWordLike) words++
    if (!slices.hasTime()) await slices.nextSlice()
  }
  return words
}
