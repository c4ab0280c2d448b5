// A request on its way through the API: its context, what a handler is, and how its answer is sent.
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { PROBLEM_MEDIA_TYPE } from '@sluice/contract'
import { drainBody, endAfter } from './drain-body.ts'

/** One HTTP request and what the API knows of it. */
export interface RequestContext {
  requestId: string
  request: IncomingMessage
  response: ServerResponse
  /** The path of the request, without its query. */
  path: string
  /** When the request's head had arrived, on the monotonic clock, in ms. */
  startedAt: number
  /** The tenant of the key. '' on open routes. */
  tenant: string
  /** Further fields of the request's one log line. */
  log: Record<string, unknown>
}

/** What a handler answers: `body` is sent as JSON, `json` is JSON text already. */
export type Answer = { status: number; headers?: Readonly<Record<string, string>> } & (
  | { body: unknown }
  | { json: string }
)

/** The handler has written its answer itself. */
export const STREAMED = 'streamed'

/** The parameters of a route's path, such as `id`. */
export type PathParams = Readonly<Record<string, string | string[]>>

/** What a route does. An error that it throws becomes a problem: see `problems.ts`. */
export type Handler = (context: RequestContext, params: PathParams) => Promise<Answer | typeof STREAMED>

/** Opens the context of a request whose head has arrived. */
export function openContext(request: IncomingMessage, response: ServerResponse): RequestContext {
  response.on('error', () => {}) // The caller hung up. 'close' follows.
  return {
    requestId: requestIdOf(request),
    request,
    response,
    path: request.url?.split('?', 1)[0] ?? '',
    startedAt: performance.now(),
    tenant: '',
    log: {},
  }
}

/** At most 128 visible ASCII characters: anything else is unsafe in a header or in a log. */
const SAFE_REQUEST_ID = /^[\x21-\x7e]{1,128}$/

/** The caller's own X-Request-Id if it is safe, else a new one. */
function requestIdOf({ headers }: IncomingMessage): string {
  const input = headers['x-request-id']
  return typeof input === 'string' && SAFE_REQUEST_ID.test(input) ? input : randomUUID()
}

/**
 * Sends an answer as JSON. If the request's body was not read to its end, the answer is sent at once, but the connection
 * closes only after the rest has arrived, within bounds: closing it on a caller that still sends would lose the answer.
 * Express's `response.json` can't do this, and would add a charset, which JSON does not have (RFC 8259).
 *
 * @param closing whether this answer is the last of its connection.
 */
export function sendAnswer({ request, response, requestId }: RequestContext, answer: Answer, closing: boolean): void {
  const text = 'json' in answer ? answer.json : JSON.stringify(answer.body)
  const unread = isUnread(request)
  response.writeHead(answer.status, {
    'content-type': answer.status >= 400 ? PROBLEM_MEDIA_TYPE : 'application/json',
    'content-length': Buffer.byteLength(text),
    'x-request-id': requestId,
    ...answer.headers,
    ...((unread || closing) && { connection: 'close' }),
  })
  if (!unread) response.end(request.method === 'HEAD' ? undefined : text)
  else {
    response.write(text)
    void endAfter(drainBody(request), request, response)
  }
}

function isUnread({ readableEnded, destroyed, headers }: IncomingMessage): boolean {
  if (readableEnded || destroyed) return false
  // A caller that asked to continue and got an answer instead does not send its body.
  if (headers.expect !== undefined) return false
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}
