// Keeps this API process responsive: bounds the memory of bodies, measures how far the event loop lags, and parses large texts in a thread of their own.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Worker } from 'node:worker_threads'
import { createTextParser, type Limits, type ParsedArray, type ParsedText, type TextParser } from '@sluice/contract'
import { overloaded } from './problems.ts'
import type { RequestContext } from './request-context.ts'

/** The memory that all bodies in flight may take together, inflaters included. */
export interface BodyMemory {
  /**
   * Reserves memory for a request until its response closes.
   *
   * @throws {ProblemError} 503 if all bodies together, or those of the tenant, would exceed their bound.
   */
  reserve(context: Pick<RequestContext, 'tenant' | 'response'>, bytes: number): Reservation
  /** How much is reserved, in bytes. */
  reserved(): number
}

/** The memory of one request. */
export interface Reservation {
  /** Raises the reservation to this many bytes. @throws {ProblemError} 503. */
  raise(bytes: number): void
}

/** Creates the memory of all bodies. A request is never refused while nothing else is reserved. */
export function createBodyMemory(bounds: BudgetBounds): BodyMemory {
  const budget = createBudget(bounds)
  return {
    reserved: budget.taken,
    reserve({ tenant, response }, bytes) {
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
export interface Budget {
  /** Returns false if all that is taken, or what the tenant has taken, would exceed its bound. The first may take any number. */
  take(tenant: string, bytes: number): boolean
  release(tenant: string, bytes: number): void
  taken(): number
}

interface BudgetBounds {
  maxBytes: number
  /** The part of all bytes that one tenant may take: its slow senders must not keep out everybody else. */
  tenantShare: number
}

/** Creates a budget of which nothing is taken. */
export function createBudget({ maxBytes, tenantShare }: BudgetBounds): Budget {
  let inAll = 0
  const ofTenants = new Map<string, number>()
  const fits = (taken: number, bytes: number, bound: number) => taken === 0 || taken + bytes <= bound
  return {
    taken: () => inAll,
    take(tenant, bytes) {
      const own = ofTenants.get(tenant) ?? 0
      if (!fits(inAll, bytes, maxBytes) || !fits(own, bytes, maxBytes * tenantShare)) return false
      inAll += bytes
      ofTenants.set(tenant, own + bytes)
      return true
    },
    release(tenant, bytes) {
      inAll -= bytes
      const own = (ofTenants.get(tenant) ?? 0) - bytes
      if (own > 0) ofTenants.set(tenant, own)
      else ofTenants.delete(tenant)
    },
  }
}

/** How far the event loop lags. */
export interface LoopDelay {
  /** The 99th percentile of its delays in the last second, in ms. */
  p99Ms: number
}

const RESOLUTION_MS = 10

/** Measures the event loop's delay, once a second, for as long as the process lives. */
export function watchLoopDelay(): LoopDelay {
  const delay: LoopDelay = { p99Ms: 0 }
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  histogram.enable()
  setInterval(() => {
    delay.p99Ms = histogram.percentile(99) / 1e6 - RESOLUTION_MS
    histogram.reset()
  }, 1_000).unref()
  return delay
}

/** Parses the texts of requests and items, large ones in a thread of its own: 10 MiB of hostile JSON takes seconds, during which nobody else would be served. */
export interface BodyParser {
  thread(text: Buffer, options: { strict: boolean }): ParsedText | Promise<ParsedText>
  array(text: Buffer, options: { strict: boolean; maxItems: number }): ParsedArray | Promise<ParsedArray>
  close(): Promise<void>
}

/** A request to the parsing thread: a method of the parser and its arguments. */
export type ParseCall = {
  [Kind in keyof TextParser]: { kind: Kind; text: Uint8Array; options: Parameters<TextParser[Kind]>[1] }
}[keyof TextParser]

/** Smaller texts take at most some 3 ms. Handing one over and back takes longer than parsing it. */
const LARGE_BYTES = 256 * 1024

/** Creates a parser for these limits. */
export function createBodyParser(limits: Limits): BodyParser {
  const here = createTextParser(limits)
  const there = createParsingThread(limits)
  const isLarge = (text: Buffer) => text.length > LARGE_BYTES
  return {
    thread: (text, options) =>
      isLarge(text) ? there.run<ParsedText>({ kind: 'thread', text, options }) : here.thread(text, options),
    array: (text, options) =>
      isLarge(text) ? there.run<ParsedArray>({ kind: 'array', text, options }) : here.array(text, options),
    close: there.close,
  }
}

/**
 * The memory of the parsing thread: at least this many MiB, and this many bytes for each byte of the largest text. V8 ends the whole process if
 * `JSON.parse` exceeds it. The costliest texts, of empty objects in arrays, take 29 bytes for each byte.
 */
const LEAST_THREAD_MIB = 512
const THREAD_BYTES_PER_BYTE = 64

interface Task {
  call: ParseCall
  resolve(result: unknown): void
  reject(error: unknown): void
}

/** Runs one call at a time. The number of calls that wait is bounded by the memory of all bodies. */
function createParsingThread(limits: Limits) {
  const threadMib = Math.max(LEAST_THREAD_MIB, (THREAD_BYTES_PER_BYTE * limits.bodyBytes) / 2 ** 20)
  const waiting: Task[] = []
  let current: Task | undefined
  let worker: Worker | undefined

  function start(): Worker {
    const started = new Worker(new URL('./parse-bodies.program.ts', import.meta.url), {
      workerData: limits,
      resourceLimits: { maxOldGenerationSizeMb: threadMib },
    })
    started.unref()
    started.on('message', (result) => finish((task) => task.resolve(result)))
    started.on('error', (error) => {
      worker = undefined
      finish((task) => task.reject(error))
    })
    return started
  }

  function finish(settle: (task: Task) => void): void {
    const task = current
    current = undefined
    if (task !== undefined) settle(task)
    runNext()
  }

  function runNext(): void {
    if (current !== undefined) return
    current = waiting.shift()
    if (current === undefined) return
    worker ??= start()
    worker.postMessage(current.call, transferable(current.call.text))
  }

  return {
    run<Result>(call: ParseCall): Promise<Result> {
      return new Promise((resolve, reject) => {
        waiting.push({ call, resolve, reject })
        runNext()
      })
    },
    async close() {
      await worker?.terminate()
    },
  }
}

/** Memory that only this text uses is handed over without a copy. */
function transferable({ buffer, byteLength }: Uint8Array): ArrayBuffer[] {
  return buffer instanceof ArrayBuffer && buffer.byteLength <= 2 * byteLength ? [buffer] : []
}
