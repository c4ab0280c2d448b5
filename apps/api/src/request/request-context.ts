// A request on its way through the API: its context, its handler and its answer.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Enqueuer, Quota } from '@sluice/queue'
import type { KnownKey } from '@sluice/store/keys'
import { CallerGoneError, QUOTA_POLICY, serviceStopping } from './problem-error.ts'

/** One HTTP request and what the API knows of it. */
export interface RequestContext {
  requestId: string
  request: IncomingMessage
  response: ServerResponse
  /** The path of the request, without its query. */
  path: string
  /** Aborts when nobody waits for the answer any more. Its reason is the error that ends the request: see `createRequestSignals`. */
  signal: AbortSignal
  /** When the request's head had arrived, on the monotonic clock, in ms. */
  startedAt: number
  /** The key of the request. None on open routes. */
  key?: KnownKey
  /** The tenant of the key. '' on open routes, and for an operator. */
  tenant: string
  /** The quota of the key. None on open routes. */
  quota?: Quota
  /** The size of the text that was read and refused, in bytes. Its key is charged for it when the request is answered. */
  refusedBytes: number
  /** Further fields of the request's one log line. */
  log: Record<string, unknown>
}

const GONE = new CallerGoneError('the caller hung up')

/**
 * Makes a function that returns the signal of a request: it aborts with a `CallerGoneError` when the response closes, and with the problem `stopping` when
 * the grace time is over.
 */
export function createRequestSignals(graceOver: AbortSignal): (response: ServerResponse) => AbortSignal {
  // A signal walks the list of its listeners for each new one, so the open requests have a set of their own.
  const open = new Set<AbortController>()
  graceOver.addEventListener('abort', () => {
    for (const controller of open) controller.abort(serviceStopping())
  })
  return (response) => {
    const controller = new AbortController()
    if (graceOver.aborted) controller.abort(serviceStopping())
    open.add(controller)
    response.once('close', () => {
      open.delete(controller)
      controller.abort(GONE)
    })
    return controller.signal
  }
}

/** The answer of a handler: `body` is sent as JSON, `json` is JSON text already, `bytes` are of the media type that the headers name. */
export type Answer = { status: number; headers?: Readonly<Record<string, string>> } & (
  | { body: unknown }
  | { json: string }
  | { bytes: Buffer }
)

/** The handler has written its answer itself. */
export const STREAMED = 'streamed'

/** The parameters of a route's path, such as `id`. */
export type PathParams = Readonly<Record<string, string | string[]>>

/** Handles the requests of a route. An error that it throws becomes a problem: see `problems.ts`. */
export type Handler = (context: RequestContext, params: PathParams) => Promise<Answer | typeof STREAMED>

/**
 * The headers of draft-ietf-httpapi-ratelimit-headers-11, on the answers to POSTs that were accepted or refused for their quota. A bucket that is refilled has
 * no window; as its window counts the time in which it is refilled. Quotes are no registered unit of the draft, so the unit has a parameter with a prefix.
 */
export function quotaHeaders(
  { quotaLeft }: Pick<Enqueuer, 'quotaLeft'>,
  { request, quota }: Pick<RequestContext, 'request' | 'quota'>,
  { status, headers }: Pick<Answer, 'status' | 'headers'>,
): Answer['headers'] {
  if (quota === undefined || request.method !== 'POST') return undefined
  const { burstQuotes, quotesPerSecond } = quota
  const isUsedUp = status === 429
  const left = isUsedUp ? 0 : status < 300 ? quotaLeft(quota) : undefined
  if (left === undefined) return undefined
  // Until the caller may post again, or until the bucket is full.
  const seconds = isUsedUp ? Number(headers?.['retry-after']) : (burstQuotes - left) / quotesPerSecond
  const window = Math.max(1, Math.round(burstQuotes / quotesPerSecond))
  return {
    'ratelimit-policy': `"${QUOTA_POLICY}";q=${burstQuotes};w=${window};sluice-unit="quotes"`,
    ratelimit: `"${QUOTA_POLICY}";r=${left};t=${Math.ceil(seconds)}`,
  }
}
