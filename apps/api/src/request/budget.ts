// Bounds what all requests share, such as memory, with a part for each tenant.
import { overloaded } from './problem-error.ts'

/** The tenant of reserved bytes, and the response (or its connection) whose end frees them. */
interface Holder {
  tenant: string
  response: { closed: boolean; once(event: 'close', listener: () => void): unknown }
}

interface BudgetOptions {
  maxBytes: number
  tenantShare: number
  restMs?: number
}

/** Bytes that all requests share. */
export type Budget = ReturnType<typeof createBudget>

/**
 * Creates a budget. A tenant gets at most `tenantShare` of it, so that its slow senders do not keep out others. What
 * `reserve` took counts for `restMs` longer, which bounds the bytes of that time.
 */
export function createBudget({ maxBytes, tenantShare, restMs = 0 }: BudgetOptions) {
  let inAll = 0
  const ofTenants = new Map<string, number>()
  const fits = (taken: number, bytes: number, bound: number) => taken === 0 || taken + bytes <= bound
  const budget = {
    taken: () => inAll,
    /** Returns false beyond a bound. While nothing of it is taken, any number fits: a large body must be accepted. */
    take(tenant: string, bytes: number): boolean {
      const own = ofTenants.get(tenant) ?? 0
      if (!fits(inAll, bytes, maxBytes) || !fits(own, bytes, maxBytes * tenantShare)) return false
      inAll += bytes
      ofTenants.set(tenant, own + bytes)
      return true
    },
    release(tenant: string, bytes: number): void {
      inAll -= bytes
      const own = (ofTenants.get(tenant) ?? 0) - bytes
      if (own > 0) ofTenants.set(tenant, own)
      else ofTenants.delete(tenant)
    },
    /** Takes bytes until the response closes. `raise` takes more. @throws {ProblemError} 503, as `raise` does. */
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
