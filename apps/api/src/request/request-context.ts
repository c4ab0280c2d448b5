// A request on its way through the API: its context, its handler, its answer.
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Params, Parsed, Preferences } from '@sluice/contract'
import type { KnownKey, RefusedKey } from '@sluice/credentials/keys'
import { redactKeys, type Span } from '@sluice/process'
import type { Quota } from '@sluice/queue'
import { requestInvalid } from './problem-error.ts'

/** One HTTP request and what the API knows of it. */
export interface RequestContext {
  requestId: string
  request: IncomingMessage
  response: ServerResponse
  /** The path of the request, without its query. */
  path: string
  /**
   * The path of its route as the description of the API has it; `none` until the route is known.
   */
  route: string
  /**
   * Aborts when nobody waits for the answer, with the error that ends the request: see
   * `createRequestSignals`.
   */
  readonly signal: AbortSignal
  /** When the request's head had arrived, on the monotonic clock, in ms. */
  startedAt: number
  /** The key of the request. None on open routes. */
  key?: KnownKey
  /** The key of a request that was refused because the key was revoked or has expired. */
  refusedKey?: RefusedKey
  /** The tenant of the key. '' on open routes, and for an operator. */
  tenant: string
  /** The quota of the key. None on open routes. */
  quota?: Quota
  /** What the caller prefers. Not read on open routes. */
  prefer: Preferences
  /**
   * The bytes for which the key is charged when the request is answered: text that was read and
   * refused, and what an answer has above its free size.
   */
  chargedBytes: number
  /**
   * The request's span. None on open routes, before the route is known, or if the request is not
   * traced.
   */
  span?: Span
  /** Further fields of the request's one log line. */
  log: Record<string, unknown>
}

/**
 * The caller's own X-Request-Id if it is safe in a header and in a log, and contains no API key,
 * else a new one.
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
  const [, text] = (request.url ?? '').split('?', 2)
  const query = parse(new URLSearchParams(text))
  if (!query.ok) throw requestInvalid(query)
  return query.value
}

/**
 * The answer of a handler. `body` is sent as JSON, `content` as it is. `headers` can name a media
 * type. Otherwise the answer is JSON, or a problem if its status is 400 or more.
 */
export type Answer = { status: number; headers?: Readonly<Record<string, string>> } & (
  | { body: unknown }
  | { content: string | Buffer }
)

/** The handler has written its answer itself. */
export const STREAMED = 'streamed'

/** How a request ends. `gone`: its caller hung up. */
export type Ending = Answer | typeof STREAMED | 'gone'

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
