/**
 * The figures of a run of requests: how many threads were posted, requests per second, times in ms,
 * and the number of wrong answers.
 */
export interface Run {
  threads: number
  rate: number
  p50: number
  p99: number
  failed: number
}

/** The median and the 99th percentile of some times; 0 for an empty list. */
export function percentiles(times: readonly number[]): { p50: number; p99: number } {
  const sorted = Float64Array.from(times).sort()
  return { p50: atShare(sorted, 0.5), p99: atShare(sorted, 0.99) }
}

/** The median of some figures; 0 for an empty list. */
export function median(figures: readonly number[]): number {
  const sorted = Float64Array.from(figures).sort()
  const middle = (sorted.length - 1) / 2
  return ((sorted[Math.floor(middle)] ?? 0) + (sorted[Math.ceil(middle)] ?? 0)) / 2
}

function atShare(sorted: Float64Array, share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}
