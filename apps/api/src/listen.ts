import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type RequestListener, STATUS_CODES } from 'node:http'
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

/**
 * Listens for HTTP. A body of any size that moves takes its time; one that does not is cut by Node's own time-outs.
 *
 * @throws {ListenError} with a message that says how to choose another port.
 */
export async function listen(
  listener: RequestListener,
  { port, host }: { port: number; host: string },
): Promise<Listening> {
  const server = createServer({ keepAliveTimeout: 65_000 }, listener)
  // Node would ask for the body by itself, before anybody looked at the key.
  server.on('checkContinue', listener)
  server.on('clientError', refuseMalformed)
  const failed = once(server, 'error').then(([error]) => Promise.reject(asListenError(error, port)))
  server.listen({ port, host, backlog: 1_024 })
  await Promise.race([once(server, 'listening'), failed])
  failed.catch(() => {})
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    close: () => new Promise((resolve) => server.close(() => resolve())),
    cut: () => server.closeAllConnections(),
  }
}

function asListenError(error: unknown, port: number): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'EADDRINUSE') return new ListenError(`port ${port} is taken; choose another one with PORT=…`)
  if (code === 'EACCES') return new ListenError(`port ${port} may not be used; choose another one with PORT=…`)
  return error
}

/** What is no HTTP gets an answer all the same, as every request does. */
function refuseMalformed(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy()
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
