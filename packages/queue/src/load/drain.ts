// How fast a queue drains, by samples of its totals: how many callers may wait, and when a refused one should try again.
import type { Load, Totals } from './queue-load.ts'

/** The totals of a queue at a time on the monotonic clock, in ms. */
export interface Sample extends Totals {
  at: number
}

/** Rates are those of the last five seconds, by samples at least a quarter of a second apart. */
export const WINDOW_MS = 5_000
export const BETWEEN_MS = 250
/** Workers are busy in an interval if at least this number of threads waits at both ends of the interval. */
export const BACKLOG = 100
/** The assumed capacity until a backlog was measured. */
export const FIRST_CAPACITY = 500
/** The weight of the last interval. */
const WEIGHT = 0.2

/** Returns the capacity: interactive threads a second that leave the load while enough of them wait. */
export function capacityAfter(capacity: number, last: Sample, next: Sample): number {
  const [passed, left] = [next.at - last.at, next.drainedInteractive - last.drainedInteractive]
  // A store that is away drains nothing, which shows nothing about the capacity.
  if (passed >= WINDOW_MS || left <= 0) return capacity
  return capacity + WEIGHT * ((left / passed) * 1000 - capacity)
}

/** Callers come again when this part of a bound is used. At the bound itself, one caller would get in. */
const ROOM = 0.9
const MOST_SECONDS = 60
/** A shorter span of samples shows too little. */
const LEAST_SPAN_MS = 500

/**
 * Returns after how many seconds, from 1 to 60, a caller should try again that was refused because of the load of the
 * queue or of a tenant, whose bounds are `most`. The load drains by `samples` of the last seconds or, if they show too
 * little, by `capacity` threads a second.
 */
export function retryAfter(
  { threads, bytes, interactive }: Load,
  most: Load,
  samples: readonly Sample[],
  capacity: number,
): number {
  const perSecond = drained(samples, 'drained') ?? capacity
  const bytesPerSecond = perSecond * (bytes / Math.max(threads, 1))
  const each = [
    (threads - ROOM * most.threads) / perSecond,
    (bytes - ROOM * most.bytes) / bytesPerSecond,
    (interactive - ROOM * most.interactive) / (drained(samples, 'drainedInteractive') ?? capacity),
  ]
  const seconds = Math.max(...each.filter((one) => !Number.isNaN(one)))
  // They differ between callers, so that not all come again at once.
  if (seconds >= MOST_SECONDS) return Math.round(MOST_SECONDS - Math.random() * 10)
  return Math.min(MOST_SECONDS, Math.max(1, Math.ceil(seconds * (1 + Math.random() / 4))))
}

/** Returns how many threads a second left the load. Undefined before that was measured. */
function drained([first, ...others]: readonly Sample[], field: 'drained' | 'drainedInteractive'): number | undefined {
  const last = others.at(-1)
  if (first === undefined || last === undefined || last.at - first.at < LEAST_SPAN_MS) return undefined
  return ((last[field] - first[field]) / (last.at - first.at)) * 1000
}
