// A request on its way through the API: its context, its handler, its answer, and the rest of its body.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { finished } from 'node:stream/promises'
import type { Preferences } from '@sluice/contract'
import type { Span } from '@sluice/ops'
import type { Quota } from '@sluice/queue'
import type { KnownKey } from '@sluice/store/keys'

/** One HTTP request and what the API knows of it. */
export interface RequestContext {
  requestId: string
  request: IncomingMessage
  response: ServerResponse
  /** The path of the request, without its query. */
  path: string
  /** The path of its route as the description of the API has it; `none` until the route is known. */
  route: string
  /** Aborts when nobody waits for the answer, with the error that ends the request: see `createRequestSignals`. */
  readonly signal: AbortSignal
  /** When the request's head had arrived, on the monotonic clock, in ms. */
  startedAt: number
  /** The key of the request. None on open routes. */
  key?: KnownKey
  /** The tenant of the key. '' on open routes, and for an operator. */
  tenant: string
  /** The quota of the key. None on open routes. */
  quota?: Quota
  /** What the caller prefers. Not read on open routes. */
  prefer: Preferences
  /** The bytes of text that were read and refused, for which the key is charged when the request is answered. */
  refusedBytes: number
  /** The request's span. None before its route is known, and on open routes. */
  span?: Span
  /** Further fields of the request's one log line. */
  log: Record<string, unknown>
}

/** The answer of a handler: `body` is sent as JSON, `json` is JSON text, the headers name the media type of `bytes`. */
export type Answer = { status: number; headers?: Readonly<Record<string, string>> } & (
  | { body: unknown }
  | { json: string }
  | { bytes: Buffer }
)

/** The handler has written its answer itself. */
export const STREAMED = 'streamed'

/** The parameters of a route's path, such as `id`. */
export type PathParams = Readonly<Record<string, string | string[]>>

/** Handles the requests of a route. An error that a handler throws becomes a problem: see `problem-error.ts`. */
export type Handler = (context: RequestContext, params: PathParams) => Promise<Answer | typeof STREAMED>

/** The bounds of draining, in bytes and in ms. */
const DRAIN_BYTES = 64 * 1024 * 1024
const DRAIN_MS = 5_000

/** Discards the rest of a body. Resolves with false if it exceeded the bound or lasted beyond `ms`. Never rejects. */
export async function drainBody(request: IncomingMessage, ms = DRAIN_MS): Promise<boolean> {
  const over = Promise.withResolvers<boolean>()
  const timer = setTimeout(over.resolve, ms, false)
  let drained = 0
  const count = ({ length }: Buffer) => {
    drained += length
    if (drained > DRAIN_BYTES) over.resolve(false)
  }
  request.on('data', count).resume()
  const ended = finished(request, { writable: false }).catch(() => {})
  const isComplete = await Promise.race([ended.then(() => true), over.promise])
  clearTimeout(timer)
  if (!isComplete) request.off('data', count).pause()
  return isComplete
}

/** Ends an answer after the rest of the request's body was drained. If draining gave up, closes the connection too. */
export async function endAfter(draining: Promise<boolean>, response: ServerResponse): Promise<void> {
  const isComplete = await draining
  response.end()
  if (!isComplete) response.req.socket.destroySoon()
}
