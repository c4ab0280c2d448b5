// Durations as heartbeats carry them: how many fell into each bin, and the longest one. Finer than the histograms of
// Prometheus, because only bins with a count cost something.

/** A bin's upper bound divided by its lower one. The estimate of a duration in it errs by at most a tenth. */
const RATIO = 1.22
/** Shorter durations are in the first bin. */
const SHORTEST_SECONDS = 0.001

/** What is timed: from the acceptance of a job until it is stored, by lane, and the two parts of this time. */
export type Timed = 'interactive' | 'bulk' | 'inQueue' | 'inStore'
export type TimedCount = `${Timed}:${number}`

export type Durations = ReturnType<typeof createDurations>

/** Counts durations since the start of a process. */
export function createDurations() {
  const totals: { [name in TimedCount]?: number } = {}
  let longest: { [name in `longest:${Timed}`]?: number } = {}
  return {
    totals,
    observe(timed: Timed, seconds: number): void {
      const bin = Math.max(Math.ceil(Math.log(seconds / SHORTEST_SECONDS) / Math.log(RATIO)), 0)
      totals[`${timed}:${bin}`] = (totals[`${timed}:${bin}`] ?? 0) + 1
      longest[`longest:${timed}`] = Math.max(longest[`longest:${timed}`] ?? 0, seconds)
    },
    /** Returns the longest durations since the last call, as peaks of a heartbeat. */
    takeLongest(): typeof longest {
      const taken = longest
      longest = {}
      return taken
    },
  }
}

/**
 * Makes a function that estimates quantiles, in seconds: never above the longest duration. Returns undefined if nothing
 * was counted.
 *
 * @param counts bins with their counts
 */
export function quantilesOf(counts: readonly (readonly [bin: string, count: number])[], longest: number) {
  const bins = counts.map(([bin, count]) => ({ bin: Number(bin), count })).sort((one, other) => one.bin - other.bin)
  const all = bins.reduce((sum, { count }) => sum + count, 0)
  if (all === 0) return undefined
  return (share: number): number => {
    let left = share * all
    const found = bins.find(({ count }) => {
      left -= count
      return left <= 0
    })
    return Math.min((2 / (1 + RATIO)) * SHORTEST_SECONDS * RATIO ** (found?.bin ?? 0), longest)
  }
}
