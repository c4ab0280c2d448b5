/** The time for deferred work in one turn of the event loop. Then new connections and other callers get their turn. */
const TURN_MS = 1

/**
 * A fair queue. It runs deferred functions for about a millisecond in each turn of the event loop, so that new
 * connections and small requests get their turn between two pieces of a caller that sends much.
 */
export function createTurns(): (run: () => void) => void {
  const waiting: (() => void)[] = []
  let isScheduled = false
  function runSome(): void {
    const began = performance.now()
    do waiting.shift()?.()
    while (waiting.length > 0 && performance.now() - began < TURN_MS)
    isScheduled = waiting.length > 0
    if (isScheduled) setImmediate(runSome)
  }
  return (run) => {
    waiting.push(run)
    if (!isScheduled) setImmediate(runSome)
    isScheduled = true
  }
}
