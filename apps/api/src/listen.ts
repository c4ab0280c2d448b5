// Listens for HTTP: time-outs for idle connections, answers to malformed requests, and an orderly end.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { refuseMalformed } from './problems.ts'

/** The address is in use by another process, or not permitted. */
class ListenError extends Error {}

/** A listening HTTP server. */
export interface Listening {
  port: number
  /** Accepts no more connections. Resolves when every open request is answered and its connection is closed. */
  close(): Promise<void>
  /** Cuts all open connections: those of callers that neither finish what they send nor hang up. */
  cut(): void
}

/** How long a caller may take for a request's head, and how long a connection may idle while the caller should send or read, in ms. */
const HEAD_MS = 60_000
const IDLE_MS = 120_000

/**
 * Listens for HTTP. A body or an answer of any size may take its time as long as it moves. A connection is cut if nothing
 * moved for `idleMs` although the caller should send or read. It is never cut while its caller waits for us.
 *
 * @throws {ListenError} with a message that says how to choose another port.
 */
export async function listen(
  listener: RequestListener,
  { port, host, idleMs = IDLE_MS }: { port: number; host: string; idleMs?: number },
): Promise<Listening> {
  // Node's own time-out for a whole request would cut a large import that moves.
  const server = createServer({ keepAliveTimeout: 65_000, headersTimeout: HEAD_MS, requestTimeout: 0 })
  server.timeout = idleMs
  const responses = new WeakMap<Socket, ServerResponse>()
  let closing = false
  const onRequest = (
    request: IncomingMessage,
    response: ServerResponse<IncomingMessage> & { req: IncomingMessage },
  ) => {
    responses.set(request.socket, response)
    response.on('timeout', () => cutIfIdle(request, response, idleMs))
    // Node closes idle connections only at the moment when the server closes.
    response.once('close', () => closing && server.closeIdleConnections())
    listener(request, response)
  }
  server.on('request', onRequest)
  // Without this listener, Node asks for the body by itself before the key is checked.
  server.on('checkContinue', onRequest)
  server.on('clientError', (error, socket: Socket) => refuseMalformed(error, socket, responses.get(socket)))
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

function cutIfIdle(request: IncomingMessage, response: ServerResponse, idleMs: number): void {
  // If the body waits for us to read it, its sender is not idle.
  const awaitsBody = !request.complete && request.readableLength === 0 && !request.isPaused()
  const isUnread = request.complete && response.writableLength > 0
  if (awaitsBody || isUnread) request.socket.destroy()
  else request.socket.setTimeout(idleMs)
}

function asListenError(error: unknown, port: number): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'EADDRINUSE') return new ListenError(`port ${port} is in use; choose another one with PORT=…`)
  if (code === 'EACCES') return new ListenError(`port ${port} is not permitted; choose another one with PORT=…`)
  return error
}
