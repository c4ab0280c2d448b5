/**
 * How long work may hold the event loop before it lets go. A step that begins just before the end is finished first: the
 * longest of the segmenter's, on 100,000 characters of Chinese or Japanese, take 20 ms, and the bound for both is 50 ms.
 */
export const SLICE_MS = 10

/** Long work cut into slices. All that share one `Slices` share its slices too, so that many at once hold the loop no longer. */
export type Slices = {
  /** Whether this turn of the event loop has time left. Ask before each step. */
  hasTime(): boolean
  /** Resolves when it is the caller's turn again, first come first served, one caller a turn of the event loop. */
  nextTurn(): Promise<void>
}

/** Makes slices of `sliceMs` milliseconds by the clock `now`, which counts milliseconds. */
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
