/**
 * Counts the words of many texts without blocking the event loop: the work is cut into slices, and the event loop runs
 * between two of them.
 */
import { countAsciiWords, segmentsOf } from './count-words.ts'

/**
 * How long a slice may block the event loop, in milliseconds. A step that begins just before the end is finished first:
 * the segmenter's longest, on 100,000 characters of Chinese or Japanese, take 20 ms. The bound for both is 50 ms.
 */
const SLICE_MS = 10

// Reading the clock costs as much as counting a short text. This many ASCII characters take some 20 µs.
const CHECK_EVERY = 5_000

/** Long work cut into slices. All work that shares one `Slices` shares its time, so that many counts at once block no longer. */
export interface Slices {
  /** Returns whether the current slice has time left. Ask before each step. */
  hasTime(): boolean
  /** Resolves in a later iteration of the event loop: first come, first served, one caller per iteration. */
  nextTurn(): Promise<void>
}

const sharedSlices = createSlices(SLICE_MS)

/**
 * Counts the words of each text as `countWords` does, without ever blocking the event loop for more than 50 ms, however
 * many texts it gets and however many such counts run at once. Each text may have as many characters as a quote.
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

/** Creates slices of `sliceMs` milliseconds by the clock `now`, which returns milliseconds. */
export function createSlices(sliceMs: number, now: () => number = () => performance.now()): Slices {
  const waiting: (() => void)[] = []
  let deadline: number | undefined

  function startTurn(): void {
    deadline = undefined
    waiting.shift()?.()
    if (waiting.length > 0) openSlice()
  }

  function openSlice(): number {
    setImmediate(startTurn)
    deadline = now() + sliceMs
    return deadline
  }

  return {
    hasTime: () => now() < (deadline ?? openSlice()),
    nextTurn: () => {
      if (deadline === undefined) openSlice()
      return new Promise((resolve) => waiting.push(resolve))
    },
  }
}

// One iterator serves all slices of a text: a text cut in two has other words.
async function countSegments(text: string, slices: Slices): Promise<number> {
  let words = 0
  for (const { isWordLike } of segmentsOf(text)) {
    if (isWordLike) words++
    if (!slices.hasTime()) await slices.nextTurn()
  }
  return words
}
