// Lets as many batches be in flight as the concurrency allows, in the order in which they ask.
import { createAdaptiveConcurrency } from './adaptive-concurrency.ts'

export interface BatchSlots {
  limit(): number
  /** Waits for a slot. Rejects with the signal's reason. */
  acquire(): Promise<void>
  /** Gives a slot back. `work` is what its batch stored. */
  release(work: number): void
  /** The service is busy: no batch begins before this time is over. */
  throttled(pauseMs: number): void
}

/** @param fixed the number of batches, which then does not adapt. */
export function createBatchSlots(fixed: number | undefined, signal: AbortSignal): BatchSlots {
  const adaptive = createAdaptiveConcurrency()
  const limit = () => fixed ?? adaptive.limit()
  const waiting: (() => void)[] = []
  let inFlight = 0
  let pausedUntil = 0

  function admit(): void {
    const pauseMs = pausedUntil - performance.now()
    if (pauseMs > 0) return
    while (inFlight < limit()) {
      const next = waiting.shift()
      if (next === undefined) return
      inFlight += 1
      next()
    }
  }

  signal.addEventListener('abort', () => {
    for (const wake of waiting.splice(0)) wake()
  })

  return {
    limit,
    async acquire() {
      signal.throwIfAborted()
      const { promise, resolve } = Promise.withResolvers<void>()
      waiting.push(resolve)
      admit()
      await promise
      signal.throwIfAborted()
    },
    release(work) {
      adaptive.completed(work, inFlight >= limit())
      inFlight -= 1
      admit()
    },
    throttled(pauseMs) {
      adaptive.throttled()
      pausedUntil = Math.max(pausedUntil, performance.now() + pauseMs)
      setTimeout(admit, pauseMs).unref()
    },
  }
}
