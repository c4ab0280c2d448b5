import type { IncomingMessage, ServerResponse } from 'node:http'

/** One HTTP call on its way through the edge. */
export interface Call {
  requestId: string
  request: IncomingMessage
  response: ServerResponse
  /** From the path, such as `id`. */
  params: Readonly<Record<string, string | string[] | undefined>>
  /** Whose key it is; '' on routes that need none. */
  tenant: string
  /** What the call's one log line tells besides. */
  log: Record<string, unknown>
}

/** What a handler answers; the body is sent as JSON. */
export interface Answer {
  status: number
  body: unknown
  headers?: Readonly<Record<string, string>>
}

/** The handler has written its answer itself. */
export const STREAMED = 'streamed'

/** What a route does. A `ProblemError` that it throws becomes the answer. */
export type Handle = (call: Call) => Promise<Answer | typeof STREAMED>
