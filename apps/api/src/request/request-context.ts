// A request, while the API handles it: its context, its handler and its answer.
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Params, type Parsed, type Preferences, refuseField } from '@sluice/contract'
import type { KnownKey, RefusedKey } from '@sluice/credentials/keys'
import { redactKeys, type Span } from '@sluice/process'
import type { Quota } from '@sluice/queue'
import { requestInvalid } from './problem-error.ts'

/** An HTTP request, and what the API knows about it. */
export interface RequestContext {
  requestId: string
  request: IncomingMessage
  response: ServerResponse
  /** The path of the request, without its query. */
  path: string
  /**
   * The path of the route, in the form that the API's description has. `none` until the route is
   * known.
   */
  route: string
  /**
   * Aborts when nobody waits for the answer. The reason is the error that ends the request: see
   * `createRequestSignals`.
   */
  readonly signal: AbortSignal
  /** When the request's head arrived, on the monotonic clock, in ms. */
  startedAt: number
  /** The request's key. Undefined on open routes. */
  key?: KnownKey
  /**
   * Checks the key again, because it may be revoked, and its tenant deleted, while a body arrives.
   * Undefined on open routes. @throws {ProblemError}
   */
  checkKey?: () => Promise<KnownKey>
  /** The request's key, if the request was refused because the key was revoked or has expired. */
  refusedKey?: RefusedKey
  /** The key's tenant. Empty on open routes, and for an operator. */
  tenant: string
  /** The key's quota. Undefined on open routes. */
  quota?: Quota
  /** The caller's preferences. Not read on open routes. */
  prefer: Preferences
  /**
   * The bytes that the key is charged for when the request is answered: text that was read and then
   * refused, and the part of a large answer that is not free.
   */
  chargedBytes: number
  /**
   * The request's span. Undefined on open routes, before the route is known, and if the request is
   * not traced.
   */
  span?: Span
  /** Further fields of the request's log line. (Each request has one line.) */
  log: Record<string, unknown>
}

/**
 * Returns the caller's X-Request-Id if it is safe in a header and in a log, and contains no API
 * key. Otherwise returns a new id.
 */
export function safeRequestId(input: string | string[]): string {
  const isSafe =
    typeof input === 'string' && /^[\x21-\x7e]{1,128}$/.test(input) && redactKeys(input) === input
  return isSafe ? input : randomUUID()
}

/** Parses the query of a request. @throws {ProblemError} 400. */
export function parseQuery<Query>(
  { request }: RequestContext,
  parse: (params: Params) => Parsed<Query>,
): Query {
  // Names may have question marks of their own.
  const text = (request.url ?? '').replace(/^[^?]*\??/, '')
  const unreadable = text.split('&').find((pair) => !isUtf8(pair))
  if (unreadable !== undefined) {
    const [field = ''] = new URLSearchParams(unreadable).keys()
    throw requestInvalid(refuseField(field, 'must be UTF-8 behind its percent signs.'))
  }
  const query = parse(new URLSearchParams(text))
  if (!query.ok) throw requestInvalid(query)
  return query.value
}

/** `URLSearchParams` would read other bytes as U+FFFD, which may name another thread. */
function isUtf8(encoded: string): boolean {
  try {
    decodeURIComponent(encoded.replace(/%(?![\da-f]{2})/gi, ''))
    return true
  } catch {
    return false
  }
}

/**
 * The answer of a handler. `body` is sent as JSON, `content` as it is. `headers` may name a media
 * type. By default, it is JSON's, or a problem's if the status is 400 or more.
 */
export type Answer = { status: number; headers?: Readonly<Record<string, string>> } & (
  | { body: unknown }
  | { content: string | Buffer }
)

/** The handler has written its answer itself. */
export const STREAMED = 'streamed'

/** The result of a request. `gone`: the caller hung up. */
export type RequestResult = Answer | typeof STREAMED | 'gone'

/** The parameters of a route's path, such as `id`. */
export type PathParams = Readonly<Record<string, string | string[]>>

/**
 * Handles the requests of a route. An error that a handler throws becomes a problem: see
 * `problem-error.ts`.
 */
export type Handler = (
  context: RequestContext,
  params: PathParams,
) => Promise<Answer | typeof STREAMED>
