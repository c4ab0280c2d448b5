// Bounds the memory of bodies, measures the delay of the event loop, and parses large texts in another thread.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createTextParser, type Limits, type ParsedArray, type ParsedText } from '@sluice/contract'
import { overloaded } from '../request/problem-error.ts'
import type { RequestContext } from '../request/request-context.ts'
import { createParsingThread } from './parsing-thread.ts'

/** The memory of all bodies in flight, inflaters included. */
export type BodyMemory = ReturnType<typeof createBodyMemory>

/** Creates the memory of all bodies. A request is never refused while nothing else is reserved. */
export function createBodyMemory(bounds: BudgetBounds) {
  const budget = createBudget(bounds)
  return {
    /** How much is reserved, in bytes. */
    reserved: budget.taken,
    /**
     * Reserves memory for a request until its response closes. It can be raised to a number of bytes.
     *
     * @throws {ProblemError} 503, as `raise` does, if all bodies, or those of the tenant, would exceed their bound.
     */
    reserve({ tenant, response }: Pick<RequestContext, 'tenant' | 'response'>, bytes: number) {
      let held = 0
      const raise = (to: number) => {
        if (to <= held || response.closed) return
        if (!budget.take(tenant, to - held)) throw overloaded()
        held = to
      }
      raise(bytes)
      response.once('close', () => budget.release(tenant, held))
      return { raise }
    },
  }
}

/** Bytes that all requests share. */
export type Budget = ReturnType<typeof createBudget>

interface BudgetBounds {
  maxBytes: number
  /** The part of `maxBytes` that one tenant may reserve: its slow senders must not keep out other tenants. */
  tenantShare: number
}

/** Creates a budget. */
export function createBudget({ maxBytes, tenantShare }: BudgetBounds) {
  let inAll = 0
  const ofTenants = new Map<string, number>()
  const fits = (taken: number, bytes: number, bound: number) => taken === 0 || taken + bytes <= bound
  return {
    taken: () => inAll,
    /**
     * Returns false if the bytes of all tenants, or of this one, would exceed their bound. A tenant without any may
     * take any number.
     */
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
  }
}

const RESOLUTION_MS = 10

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

/** Smaller texts are parsed within some 3 ms, which is less than moving them to another thread and back. */
const LARGE_BYTES = 256 * 1024

export type BodyParser = ReturnType<typeof createBodyParser>

/**
 * Creates a parser of requests and items. It parses large texts in a thread of its own: parsing 10 MiB of hostile JSON
 * lasts seconds, in which the event loop would serve no other caller.
 */
export function createBodyParser(limits: Limits) {
  const here = createTextParser(limits)
  const there = createParsingThread(limits)
  const isLarge = (text: Buffer) => text.length > LARGE_BYTES
  return {
    thread: (text: Buffer, options: { strict: boolean }) =>
      isLarge(text) ? there.run<ParsedText>({ kind: 'thread', text, options }) : here.thread(text, options),
    array: (text: Buffer, options: { strict: boolean; maxItems: number }) =>
      isLarge(text) ? there.run<ParsedArray>({ kind: 'array', text, options }) : here.array(text, options),
    close: there.close,
  }
}
