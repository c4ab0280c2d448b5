// Listens for HTTP: time-outs, answers to malformed requests, and an orderly end.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, maxHeaderSize, type RequestListener, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { PROBLEM_MEDIA_TYPE, PROBLEMS } from '@sluice/contract'
import { bodyUnreadable, methodNotAllowed, overloaded, ProblemError, problemBody } from '../request/problem-error.ts'
import { boundConnections } from './bound-connections.ts'
import type { ConnectionBounds } from './cut-connections.ts'

/** The time for a request's head to arrive, and for a connection to idle while the caller should send or read. */
const HEAD_MS = 20_000
const IDLE_MS = 120_000
/** An item of an import waits for its job to be enqueued, for its result, and for one more look at the result. */
const IDLE_WAITS = 3
/** A connection that idles for less is not closed for a new one, in ms. */
const LEAST_IDLE_MS = 1_000
/** How many connections wait to be accepted while the event loop is busy. Beyond it, callers are reset. */
const BACKLOG = 4_096
/** `linger` is not needed if no request came for this time. */
const QUIET_MS = 5_000

type ListenOptions = { port: number; host: string; headMs?: number; waitSeconds?: number } & Partial<ConnectionBounds>

/**
 * Listens for HTTP. A body or an answer of any size may last as long as it moves. A connection is cut if nothing
 * moved for `idleMs` although the caller should send or read. It is never cut while its caller waits for us.
 *
 * @throws Node's error if the address is in use or not permitted.
 */
export async function listen(listener: RequestListener, { port, host, ...bounds }: ListenOptions) {
  const { headMs = HEAD_MS, waitSeconds = 0, leastIdleMs = LEAST_IDLE_MS, maxConnections = 10_000 } = bounds
  const { maxUnreadBytes = 2 ** 28, maxUnparsedBytes = 2 ** 25 } = bounds
  const { idleMs = Math.max(IDLE_MS, IDLE_WAITS * waitSeconds * 1000) } = bounds
  const connections = boundConnections(
    listener,
    {
      refuse: (request) => endWithProblem(request.socket, overloaded()),
      refuseChunks: (socket) => refuseMessage(socket, tinyChunks()),
    },
    { maxConnections, maxUnreadBytes, maxUnparsedBytes, idleMs, leastIdleMs },
  )
  const server = createServer({
    keepAliveTimeout: 65_000,
    headersTimeout: headMs,
    connectionsCheckingInterval: headMs / 10,
    // Node's own time-out for a whole request would cut a large import that moves.
    requestTimeout: 0,
    // Node would answer without a problem and without X-Request-Id. The middleware checks it.
    requireHostHeader: false,
  })
  server.timeout = idleMs
  // A caller that has sent everything may close its side before it reads the answer.
  Object.assign(server, { httpAllowHalfOpen: true })
  server.on('connection', connections.onConnection)
  server.on('request', connections.onRequest)
  // Without these listeners, Node asks for the body by itself before the key is checked, or refuses without a problem.
  server.on('checkContinue', connections.onRequest)
  server.on('checkExpectation', connections.onRequest)
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    // The rest of the request is read and discarded after the answer.
    if (socket.writableEnded && error.code !== 'ECONNRESET') return
    if (error.code === 'ECONNRESET') socket.destroy()
    else refuseMessage(socket, malformed(error.code))
  })
  server.on('connect', (_request, socket: Socket) => {
    socket.on('error', () => {})
    endWithProblem(socket, methodNotAllowed('GET, HEAD, POST'))
  })
  function endWithProblem(socket: Socket, problem: ProblemError): void {
    socket.write(messageOf(problem))
    connections.closeSoon(socket)
  }
  /** Refuses a message that can't be read, but never in the middle of another answer. */
  function refuseMessage(socket: Socket, problem: ProblemError): void {
    const response = connections.responseOn(socket)
    const isAnswering = response?.headersSent === true && !response.closed
    if (!socket.writable || isAnswering) socket.destroy()
    else endWithProblem(socket, problem)
  }
  server.listen({ port, host, backlog: BACKLOG })
  await once(server, 'listening')
  // A connection that can't be accepted, without a free file descriptor for example, ends no other one.
  server.on('error', () => {})
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    /** The number of open connections. */
    connections: connections.size,
    /**
     * Serves on for this long, so that callers with an idle connection and balancers learn that the process stops before
     * they are refused. Resolves at once if nobody called lately.
     */
    async linger(ms: number): Promise<void> {
      const isQuiet = performance.now() - connections.lastRequestAt() > QUIET_MS
      if (!isQuiet || connections.size() > 0) await setTimeout(ms)
    },
    /** Accepts no more connections. Resolves when every open request is answered and its connection is closed. */
    close(): Promise<void> {
      connections.close()
      return new Promise((resolve) => server.close(() => resolve()))
    },
    /** Cuts all open connections: those of callers that neither finish what they send nor hang up. */
    cut: () => server.closeAllConnections(),
  }
}

/** The problem of a message that Node could not parse, by the code of its error. */
function malformed(code: string | undefined): ProblemError {
  if (code === 'HPE_HEADER_OVERFLOW') {
    const detail = `The head of a request may have at most ${maxHeaderSize} bytes.`
    return new ProblemError('headers_too_large', { detail })
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new ProblemError('request_timeout', { detail: 'The head of the request did not arrive in time.' })
  return bodyUnreadable('not_http', 'This is not a valid HTTP request.')
}

/** The problem of a body in chunks that each cost more than they bring. */
function tinyChunks(): ProblemError {
  return bodyUnreadable('too_many', 'The body has more than 10,000 chunks of fewer than 16 bytes in the mean.')
}

/** The whole answer of a problem, for a socket without a response. */
function messageOf(problem: ProblemError): string {
  const requestId = randomUUID()
  const body = JSON.stringify(problemBody(problem, undefined, requestId))
  const { status } = PROBLEMS[problem.code]
  const headers = {
    'content-type': PROBLEM_MEDIA_TYPE,
    'content-length': Buffer.byteLength(body),
    'x-request-id': requestId,
    ...problem.headers,
    connection: 'close',
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`
}
