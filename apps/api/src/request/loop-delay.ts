// Measures the delay of the event loop; POSTs are refused while it is too long.
import { monitorEventLoopDelay } from 'node:perf_hooks'

/** The event loop's delay is measured this often. */
const RESOLUTION_MS = 50

/** Measures each second the 99th percentile of the event loop's delays in that second, until the process ends. */
export function watchLoopDelay(): { p99Ms: number } {
  const delay = { p99Ms: 0 }
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  histogram.enable()
  setInterval(() => {
    delay.p99Ms = histogram.percentile(99) / 1e6 - RESOLUTION_MS
    histogram.reset()
  }, 1_000).unref()
  return delay
}
