import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { createProblem, PROBLEM_MEDIA_TYPE } from '@sluice/contract'

/** The address is taken by another process, or not ours to take. */
class ListenError extends Error {}

/** A listening HTTP server. */
export interface Listening {
  port: number
  /** Takes no more connections; resolves when every open request is answered and its connection closed. */
  close(): Promise<void>
  /** Cuts the connections that are still open: of callers that neither finish what they send nor hang up. */
  cut(): void
}

/** How long a caller may take for a request's head, and how long neither of its directions may move while it is the caller's turn, in ms. */
const HEAD_MS = 60_000
const IDLE_MS = 120_000

/**
 * Listens for HTTP. A body or an answer of any size that moves takes its time. A connection is cut on which nothing moved for `idleMs` although
 * the caller should send or read; one whose caller waits for us is not.
 *
 * @throws {ListenError} with a message that says how to choose another port.
 */
export async function listen(
  listener: RequestListener,
  { port, host, idleMs = IDLE_MS }: { port: number; host: string; idleMs?: number },
): Promise<Listening> {
  // Node's own bound for a whole request would cut a large batch that moves.
  const server = createServer({ keepAliveTimeout: 65_000, headersTimeout: HEAD_MS, requestTimeout: 0 })
  server.timeout = idleMs
  const answers = new WeakMap<Socket, ServerResponse>()
  let closing = false
  const onRequest = (
    request: IncomingMessage,
    response: ServerResponse<IncomingMessage> & { req: IncomingMessage },
  ) => {
    answers.set(request.socket, response)
    response.on('timeout', () => cutIdle(request, response, idleMs))
    // A connection that was in use when the server closed is not looked at again by Node.
    response.once('close', () => closing && server.closeIdleConnections())
    listener(request, response)
  }
  server.on('request', onRequest)
  // Node would ask for the body by itself, before anybody looked at the key.
  server.on('checkContinue', onRequest)
  server.on('clientError', (error, socket: Socket) => refuseMalformed(error, socket, answers.get(socket)))
  const failed = once(server, 'error').then(([error]) => Promise.reject(asListenError(error, port)))
  server.listen({ port, host, backlog: 1_024 })
  await Promise.race([once(server, 'listening'), failed])
  failed.catch(() => {})
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    close() {
      closing = true
      return new Promise((resolve) => server.close(() => resolve()))
    },
    cut: () => server.closeAllConnections(),
  }
}

function cutIdle(request: IncomingMessage, response: ServerResponse, idleMs: number): void {
  // A body that waits for us to read it is no fault of its sender's.
  const awaitsBody = !request.complete && request.readableLength === 0 && !request.isPaused()
  const isUnread = request.complete && response.writableLength > 0
  if (awaitsBody || isUnread) request.socket.destroy()
  else request.socket.setTimeout(idleMs)
}

function asListenError(error: unknown, port: number): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'EADDRINUSE') return new ListenError(`port ${port} is taken; choose another one with PORT=…`)
  if (code === 'EACCES') return new ListenError(`port ${port} may not be used; choose another one with PORT=…`)
  return error
}

/** What is no HTTP gets an answer all the same, as every request does, but never in the middle of another answer. */
function refuseMalformed(error: NodeJS.ErrnoException, socket: Socket, answer: ServerResponse | undefined): void {
  const isAnswering = answer?.headersSent === true && !answer.closed
  if (!socket.writable || error.code === 'ECONNRESET' || isAnswering) return void socket.destroy()
  const requestId = randomUUID()
  const problem = createProblem('body_unreadable', {
    detail: 'This is not a valid HTTP request, or its headers are too large.',
    requestId,
  })
  const body = JSON.stringify(problem)
  const head = [
    `HTTP/1.1 400 ${STATUS_CODES[400]}`,
    `content-type: ${PROBLEM_MEDIA_TYPE}`,
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${requestId}`,
    'connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}
