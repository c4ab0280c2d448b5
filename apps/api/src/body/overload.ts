// Keeps this API process responsive: bounds the memory of bodies, measures how far the event loop lags, and parses large texts in a thread of their own.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createTextParser, type Limits, type ParsedArray, type ParsedText } from '@sluice/contract'
import { overloaded } from '../request/problem-error.ts'
import type { RequestContext } from '../request/request-context.ts'
import { createParsingThread } from './parsing-thread.ts'

/** The memory that all bodies in flight may take together, inflaters included. */
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
     * @throws {ProblemError} 503, as `raise` too, if all bodies together, or those of the tenant, would exceed their bound.
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
  /** The part of all bytes that one tenant may take: its slow senders must not keep out everybody else. */
  tenantShare: number
}

/** Creates a budget of which nothing is taken. */
export function createBudget({ maxBytes, tenantShare }: BudgetBounds) {
  let inAll = 0
  const ofTenants = new Map<string, number>()
  const fits = (taken: number, bytes: number, bound: number) => taken === 0 || taken + bytes <= bound
  return {
    taken: () => inAll,
    /** Returns false if all that is taken, or what the tenant has taken, would exceed its bound. The first may take any number. */
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

/** Measures how far the event loop lags, once a second, for as long as the process lives: the 99th percentile of its delays in that second, in ms. */
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

/** Smaller texts take at most some 3 ms. Handing one over and back takes longer than parsing it. */
const LARGE_BYTES = 256 * 1024

export type BodyParser = ReturnType<typeof createBodyParser>

/**
 * Creates a parser of requests and items. It parses large texts in a thread of its own: 10 MiB of hostile JSON takes seconds, during which nobody else
 * would be served.
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
