// Reads a request's body as a whole: reserves memory, reads the body, and parses it.
import type { IncomingMessage } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { createTextParser, type Limits } from '@sluice/contract'
import { bodyTooLarge, CallerGoneError, overloaded, type SizeLimit } from '../request/problem-error.ts'
import { type BodyContext, readArriving } from './arriving-body.ts'
import { type Coding, checkContentType } from './body-chunks.ts'
import { createParsingThread } from './parsing-thread.ts'

/** Returns the length that a body announces, infinity if it announces none. @throws {ProblemError} 413. */
export function checkContentLength({ headers }: IncomingMessage, bytes: number, limit: SizeLimit): number {
  const length = Number(headers['content-length'] ?? Number.POSITIVE_INFINITY)
  if (Number.isFinite(length) && length > bytes) throw bodyTooLarge(bytes, limit)
  return length
}

export interface BodyDeps {
  bodyMemory: Pick<Budget, 'reserve'>
  limits: { bodyBytes: number }
}

/** The most that Node reads from a socket at once. */
const ONE_READ_BYTES = 64 * 1024

/**
 * Reads a whole body, inflated. Its memory stays reserved until the response closes: the parsed body lives until then.
 *
 * @param coding by default, read from the headers, which must announce JSON.
 * @param withinMs the time within which the body must arrive.
 * @throws {ProblemError} 415 if the body is not in JSON; 503 without memory for the body, or when the grace time is
 *   over; 413 beyond `bodyBytes`, as sent or inflated; 400 if the body does not inflate; 408 if it is too slow.
 * @throws {CallerGoneError}
 */
export async function readBody(
  context: BodyContext,
  { bodyMemory, limits: { bodyBytes } }: BodyDeps,
  coding = codingOfJson(context.request),
  withinMs?: number,
): Promise<Buffer> {
  const { request } = context
  const announced = checkContentLength(request, bodyBytes, 'bodyBytes')
  const mayBeThere = coding === 'identity' && announced <= ONE_READ_BYTES && request.headers.expect === undefined
  // Node emits the request before it parses the rest of the same read, so a small body may be there one turn later.
  if (mayBeThere && !request.complete) await setImmediate()
  if (!mayBeThere || !request.complete || request.destroyed || context.signal.aborted)
    return readArriving(context, { coding, announced, bytes: bodyBytes }, bodyMemory, withinMs)
  bodyMemory.reserve(context, announced)
  return takeWhole(request)
}

const JSON_TYPE = 'application/json'

function codingOfJson(request: IncomingMessage): Coding {
  const { 'content-type': type, 'content-encoding': coding } = request.headers
  return type === JSON_TYPE && coding === undefined ? 'identity' : checkContentType(request, [JSON_TYPE]).coding
}

/**
 * Returns a body that arrived with its head. Waits for 'close': until then, `isUnread` may be true, and an answer would
 * close the connection.
 */
function takeWhole(request: IncomingMessage): Promise<Buffer> {
  const body: Buffer = request.read() ?? Buffer.alloc(0)
  return new Promise((resolve, reject) => {
    request.once('close', () => {
      if (request.readableEnded) resolve(body)
      else reject(new CallerGoneError('the caller hung up'))
    })
  })
}

/** The tenant of reserved bytes, and the response (or its connection) whose end frees them. */
interface Holder {
  tenant: string
  response: { closed: boolean; once(event: 'close', listener: () => void): unknown }
}

/** Bytes that all requests share. */
export type Budget = ReturnType<typeof createBudget>

/**
 * Creates a budget.
 *
 * @param tenantShare the part of `maxBytes` that one tenant may take: its slow senders must not keep out other tenants.
 */
export function createBudget({ maxBytes, tenantShare }: { maxBytes: number; tenantShare: number }) {
  let inAll = 0
  const ofTenants = new Map<string, number>()
  const fits = (taken: number, bytes: number, bound: number) => taken === 0 || taken + bytes <= bound
  const budget = {
    taken: () => inAll,
    /**
     * Returns false if the total or the tenant's bytes would exceed their bound. A bound of which nothing is taken yet
     * accepts any number.
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
    /**
     * Takes bytes for a request until its response closes. `raise` enlarges their number.
     *
     * @throws {ProblemError} 503, as `raise` does, if the total or the tenant's bytes would exceed their bound.
     */
    reserve({ tenant, response }: Holder, bytes: number) {
      let reserved = 0
      const raise = (to: number) => {
        if (to <= reserved || response.closed) return
        if (!budget.take(tenant, to - reserved)) throw overloaded()
        reserved = to
      }
      raise(bytes)
      response.once('close', () => budget.release(tenant, reserved))
      return { raise }
    },
  }
  return budget
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
  const parserOf = (text: Buffer) => (text.length > LARGE_BYTES ? there : here)
  return {
    thread: (text: Buffer, options: { strict: boolean }) => parserOf(text).thread(text, options),
    array: (text: Buffer, options: { strict: boolean; maxItems: number }) => parserOf(text).array(text, options),
    close: there.close,
  }
}
