// Counts durations for heartbeats: how many fall into each bin, and the longest one. There can be
// more bins than in the histograms of Prometheus, because a heartbeat leaves out bins above its
// longest duration.

import type { Lane } from '@sluice/queue'

/**
 * The upper bound of a bin, divided by its lower bound. So the estimate of a duration in it errs by
 * at most a tenth.
 */
const RATIO = 1.22
/** Shorter durations are in the first bin. */
const SHORTEST_SECONDS = 0.001

/**
 * What is timed, by lane: a job from its acceptance until it is stored, and the two parts of this
 * time.
 */
export type Timed = Lane | `${'inQueue' | 'inStore'}:${Lane}`
/** How many durations fell into each bin, from the first bin to the last one that is not empty. */
export type Bins = { [timed in Timed]?: number[] }

export type Durations = ReturnType<typeof createDurations>

/** Counts durations for the heartbeats of a process. */
export function createDurations() {
  let observed: { durations: Bins; longest: { [name in `longest:${Timed}`]?: number } } = {
    durations: {},
    longest: {},
  }
  return {
    observe(timed: Timed, seconds: number): void {
      const { durations, longest } = observed
      const bin = Math.max(Math.ceil(Math.log(seconds / SHORTEST_SECONDS) / Math.log(RATIO)), 0)
      const bins = durations[timed] ?? []
      while (bins.length <= bin) bins.push(0)
      bins[bin] = (bins[bin] ?? 0) + 1
      durations[timed] = bins
      longest[`longest:${timed}`] = Math.max(longest[`longest:${timed}`] ?? 0, seconds)
    },
    /**
     * Returns the durations since the last call, and the longest of them (as peaks of a heartbeat).
     */
    take(): typeof observed {
      const taken = observed
      observed = { durations: {}, longest: {} }
      return taken
    },
  }
}

/**
 * Makes a function that estimates quantiles, in seconds. An estimate is never above the longest
 * duration. The function returns undefined if nothing was counted.
 *
 * @param lists the numbers in each bin, which are added up.
 */
export function quantilesOf(lists: readonly (readonly number[])[], longest: number) {
  const length = Math.max(0, ...lists.map((list) => list.length))
  const bins = Array.from({ length }, (_, bin) =>
    lists.reduce((sum, list) => sum + (list[bin] ?? 0), 0),
  )
  const all = bins.reduce((sum, count) => sum + count, 0)
  if (all === 0) return undefined
  return (share: number): number => {
    let left = share * all
    const found = bins.findIndex((count) => {
      left -= count
      return left <= 0
    })
    return Math.min((2 / (1 + RATIO)) * SHORTEST_SECONDS * RATIO ** found, longest)
  }
}
