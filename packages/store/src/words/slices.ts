// Counts words by the segmenter, in slices of time. The event loop runs between two slices.
const segmenter = new Intl.Segmenter('en', { granularity: 'word' })

/**
 * A slice blocks the event loop for `SLICE_MS` + a step that begins just before its end. A step takes 20 ms at most:
 * the segmenter on 100,000 characters of Chinese or Japanese. The bound for both together is 50 ms.
 */
export const SLICE_MS = 10

/** All work that uses the same `Slices` shares the time of each slice. */
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
    /** Resolves in a later iteration of the event loop: first come, first served, one caller per iteration. */
    nextSlice(): Promise<void> {
      if (deadline === undefined) openSlice()
      return new Promise((resolve) => waiting.push(resolve))
    },
  }
}

/** Counts the words of a text. One iterator serves all slices of the text: a text cut in two has other words. */
export async function countSegments(text: string, slices: Slices): Promise<number> {
  let words = 0
  for (const { isWordLike } of segmenter.segment(text)) {
    if (isWordLike) words++
    if (!slices.hasTime()) await slices.nextSlice()
  }
  return words
}
