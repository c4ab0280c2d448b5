// Turns of large reads: a tenant that reads without pause leaves most of the time of a replica to others.
import { setTimeout as delay } from 'node:timers/promises'
import { overloaded } from './problem-error.ts'

/** A read that would wait longer for its turn is refused. */
const MOST_WAIT_MS = 5_000

export type ReadTurns = ReturnType<typeof createReadTurns>

/** Creates the turns. While a tenant rests after a large read, its next reads wait. */
export function createReadTurns() {
  const restUntil = new Map<string, number>()
  return {
    /** Waits for a turn. @param restMs how long the next turn waits, if that is known. @throws {ProblemError} 503. */
    async begin(tenant: string, signal: AbortSignal, restMs = 0): Promise<void> {
      const now = performance.now()
      const start = Math.max(now, restUntil.get(tenant) ?? 0)
      if (start - now > MOST_WAIT_MS) throw overloaded()
      if (start + restMs > now) restUntil.set(tenant, start + restMs)
      else restUntil.delete(tenant)
      if (start > now) await delay(start - now, undefined, { signal })
    },
    /** Lets the next turn wait longer. */
    rest(tenant: string, ms: number): void {
      restUntil.set(tenant, Math.max(performance.now(), restUntil.get(tenant) ?? 0) + ms)
    },
  }
}
