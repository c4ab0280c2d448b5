// Bounds what a request or a tenant may take of what all requests share: memory and disk space,
// quota for large answers, and turns for large reads and posts. With turns, a tenant whose large
// requests never pause leaves most of a replica's time to others.
import { setTimeout as delay } from 'node:timers/promises'
import type { Enqueuer } from '@sluice/queue'
import { FREE_ANSWER_BYTES } from '../settings.ts'
import { overloaded } from './problem-error.ts'
import type { Answer, RequestContext } from './request-context.ts'

/** The tenant that reserves bytes, and the response (or its connection) whose end frees them. */
interface Holder {
  tenant: string
  response: { closed: boolean; once(event: 'close', listener: () => void): unknown }
}

interface BudgetOptions {
  maxBytes: number
  tenantShare: number
  restMs?: number
}

/**
 * A tenant counts as active for this time after it has taken bytes, so that the pauses between its
 * posts do not matter.
 */
const SHARED_MS = 1_000
const NOBODY = { tenant: '', at: Number.NEGATIVE_INFINITY }

/** Bytes that all requests share. */
export type Budget = ReturnType<typeof createBudget>

/**
 * Creates a budget. A tenant gets at most `tenantShare` of it, so that a tenant's slow senders do
 * not keep others out. Bytes that were taken by `reserve` still count for `restMs` after they are
 * freed, which bounds the bytes in that time.
 */
export function createBudget({ maxBytes, tenantShare, restMs = 0 }: BudgetOptions) {
  let inAll = 0
  const ofTenants = new Map<string, number>()
  /** The last tenant that took bytes, and the last other one, each with the time. */
  let [last, lastOther] = [NOBODY, NOBODY]
  const fits = (taken: number, bytes: number, bound: number) =>
    taken === 0 || taken + bytes <= bound
  const budget = {
    taken: () => inAll,
    /** Returns whether another tenant has taken bytes within the last second. */
    isShared(tenant: string): boolean {
      const other = last.tenant === tenant ? lastOther : last
      return performance.now() - other.at < SHARED_MS
    },
    /**
     * Returns false if a bound would be exceeded. If nothing is taken yet, any number fits, because
     * a large body must be accepted.
     */
    take(tenant: string, bytes: number): boolean {
      const own = ofTenants.get(tenant) ?? 0
      if (!fits(inAll, bytes, maxBytes) || !fits(own, bytes, maxBytes * tenantShare)) return false
      inAll += bytes
      ofTenants.set(tenant, own + bytes)
      if (tenant !== last.tenant) lastOther = last
      last = { tenant, at: performance.now() }
      return true
    },
    release(tenant: string, bytes: number): void {
      inAll -= bytes
      const own = (ofTenants.get(tenant) ?? 0) - bytes
      if (own > 0) ofTenants.set(tenant, own)
      else ofTenants.delete(tenant)
    },
    /**
     * Takes bytes until the response closes. `raise` takes more bytes.
     * @throws {ProblemError} 503, as `raise` does.
     */
    reserve({ tenant, response }: Holder, bytes: number) {
      let reserved = 0
      const raise = (to: number) => {
        if (to <= reserved || response.closed) return
        if (!budget.take(tenant, to - reserved)) throw overloaded()
        reserved = to
      }
      raise(bytes)
      const release = () => budget.release(tenant, reserved)
      response.once('close', () => (restMs > 0 ? setTimeout(release, restMs).unref() : release()))
      return { raise }
    },
  }
  return budget
}

/**
 * Charges an answer's bytes above its free size.
 * @param paidBytes what the request has paid for already.
 */
export function chargeAnswer(
  context: Pick<RequestContext, 'chargedBytes'>,
  bytes: number,
  paidBytes = 0,
): void {
  context.chargedBytes += Math.max(0, bytes - FREE_ANSWER_BYTES - paidBytes)
}

export interface AnswerDeps {
  bodyBudget: Pick<Budget, 'reserve'>
}

/**
 * Answers 200 with a body that may be large.
 * @throws {ProblemError} 503 if there is no memory for it.
 */
export function jsonAnswer(
  { bodyBudget }: AnswerDeps,
  context: RequestContext,
  body: object,
): Answer {
  const content = JSON.stringify(body)
  chargeAnswer(context, Buffer.byteLength(content))
  // The answer stays in memory until its caller has read it.
  bodyBudget.reserve(context, content.length)
  return { status: 200, content }
}

export interface ReadLimitDeps extends AnswerDeps {
  readBudget: Budget
  readTurns: TenantTurns
  enqueuer: Pick<Enqueuer, 'quotaLeft'>
}

/**
 * Limits concurrent reads, because each may scan a large source, and occupies a connection to
 * MongoDB. After a large read, its tenant must wait before the next one. While the key's quota is
 * used up, a page ends at its free size.
 */
export async function readWithinLimits<Result>(
  { readBudget, readTurns, enqueuer }: ReadLimitDeps,
  context: RequestContext,
  read: (mostCharacters?: number) => Promise<Result>,
  restMs?: number,
): Promise<Result> {
  const { tenant, quota } = context
  if (!readBudget.take(tenant, 1)) throw overloaded()
  const isUsedUp = () => quota !== undefined && enqueuer.quotaLeft(quota) === 0
  try {
    const most = () => (isUsedUp() ? FREE_ANSWER_BYTES : undefined)
    return await readTurns.take(context, () => read(most()), restMs)
  } finally {
    readBudget.release(tenant, 1)
  }
}

/** A read or post is refused if it would wait for its turn for longer than this. */
const MOST_WAIT_MS = 5_000
/**
 * After a large read, MongoDB is left to others for this many times as long, because reads slow
 * down writes.
 */
const REST_TIMES = 2

type TurnTaker = Pick<RequestContext, 'tenant' | 'signal' | 'chargedBytes'>

export type TenantTurns = ReturnType<typeof createTenantTurns>

/** Creates the turns. After a large read or post, the next ones of its tenant wait. */
export function createTenantTurns() {
  const restUntil = new Map<string, number>()
  const nextTurnOf = (tenant: string) => restUntil.get(tenant) ?? 0
  return {
    /**
     * Calls `run` when it is the tenant's turn.
     *
     * @param restMs how long the tenant's next turn waits, if that is known in advance. Otherwise,
     * if the answer is charged, it waits `REST_TIMES` times as long as `run` took.
     * @throws {ProblemError} 503.
     */
    async take<Result>(
      context: TurnTaker,
      run: () => Promise<Result>,
      restMs?: number,
    ): Promise<Result> {
      const { tenant, signal } = context
      const since = performance.now()
      try {
        // A waiting caller has not taken the turn yet. If it hangs up, the next one takes it.
        for (let at = since; at < nextTurnOf(tenant); at = performance.now()) {
          if (nextTurnOf(tenant) - since > MOST_WAIT_MS) throw overloaded()
          await delay(nextTurnOf(tenant) - at, undefined, { signal })
        }
        const began = performance.now()
        if (restMs === undefined) restUntil.delete(tenant)
        else restUntil.set(tenant, began + restMs)
        const result = await run()
        const ended = performance.now()
        const restsNow = restMs === undefined && context.chargedBytes > 0
        if (restsNow)
          restUntil.set(tenant, Math.max(ended, nextTurnOf(tenant)) + REST_TIMES * (ended - began))
        return result
      } catch (error) {
        throw signal.aborted ? signal.reason : error
      }
    },
  }
}
