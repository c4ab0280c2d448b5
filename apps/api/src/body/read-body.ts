// Reads a request's body as a whole: reserves memory, reads the body, and parses it.
import type { IncomingMessage } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { createTextParser, type Limits } from '@sluice/contract'
import { bodyTooLarge, CallerGoneError, overloaded, type SizeLimit } from '../request/problem-error.ts'
import { type BodyContext, readArriving } from './arriving-body.ts'
import { type Coding, checkContentType } from './body-chunks.ts'
import { type CompletedJob, completedAnswer } from './job-answer.ts'
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
 * @throws {ProblemError} 415; 503 without memory or grace time; 413; 400 if it does not inflate; 408 if it is too slow.
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
 * Reads a body that came with its head. Resolves at 'close', because until then `isUnread` may be true, and the answer
 * would close the connection.
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

/** Smaller texts are parsed within some 3 ms, which is less than moving them to another thread and back. */
const LARGE_BYTES = 256 * 1024

export type BodyParser = ReturnType<typeof createBodyParser>

/**
 * Parses large texts, and builds large answers of jobs, in a thread of its own: 10 MiB of hostile JSON would block the
 * event loop for seconds.
 */
export function createBodyParser(limits: Limits) {
  const here = createTextParser(limits)
  const there = createParsingThread(limits)
  const parserOf = (text: Buffer) => (text.length > LARGE_BYTES ? there : here)
  return {
    thread: (text: Buffer, options: { strict: boolean }) => parserOf(text).thread(text, options),
    array: (text: Buffer, options: { strict: boolean; maxItems: number }) => parserOf(text).array(text, options),
    jobAnswer: async (job: CompletedJob, texts: { data: Buffer; result: Buffer }) =>
      texts.data.length + texts.result.length > LARGE_BYTES ? there.jobAnswer(job, texts) : completedAnswer(job, texts),
    close: there.close,
  }
}
