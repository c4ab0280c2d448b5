// Turns of large reads: a tenant that reads without pause leaves most of the time of a replica to others.
import { setTimeout as delay } from 'node:timers/promises'
import { overloaded } from './problem-error.ts'
import type { RequestContext } from './request-context.ts'

/** A read that would wait longer for its turn is refused. */
const MOST_WAIT_MS = 5_000
/** After a large read, MongoDB serves only others for this number of times as long: reads slow their writes down. */
const REST_TIMES = 2

type Reader = Pick<RequestContext, 'tenant' | 'signal' | 'chargedBytes'>

export type ReadTurns = ReturnType<typeof createReadTurns>

/** Creates the turns. While a tenant rests after a large read, its next reads wait. */
export function createReadTurns() {
  const restUntil = new Map<string, number>()
  const nextTurnOf = (tenant: string) => Math.max(performance.now(), restUntil.get(tenant) ?? 0)
  return {
    /**
     * Reads when it is the tenant's turn. `restMs`: how long its next turn waits, if that is known before; if not, and
     * the answer is charged, `REST_TIMES` as long as the read took.
     *
     * @throws {ProblemError} 503.
     */
    async take<Found>(context: Reader, read: () => Promise<Found>, restMs?: number): Promise<Found> {
      const { tenant, signal } = context
      const start = nextTurnOf(tenant)
      const waitMs = start - performance.now()
      if (waitMs > MOST_WAIT_MS) throw overloaded()
      if (restMs !== undefined) restUntil.set(tenant, start + restMs)
      else if (waitMs <= 0) restUntil.delete(tenant)
      try {
        if (waitMs > 0) await delay(waitMs, undefined, { signal })
        const began = performance.now()
        const found = await read()
        const restsNow = restMs === undefined && context.chargedBytes > 0
        if (restsNow) restUntil.set(tenant, nextTurnOf(tenant) + REST_TIMES * (performance.now() - began))
        return found
      } catch (error) {
        throw signal.aborted ? signal.reason : error
      }
    },
  }
}
