// Listens for HTTP, with time-outs, answers to malformed requests, and an orderly end.
import { randomInt, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, maxHeaderSize, type RequestListener, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate, setTimeout } from 'node:timers/promises'
import {
  createProblem,
  PROBLEM_MEDIA_TYPE,
  PROBLEMS,
  type ProblemCode,
  type ProblemMembers,
} from '@sluice/contract'
import { boundConnections, MAX_HEADERS } from './bound-connections.ts'
import { BOUNDS, type ConnectionBounds, cutIfIdle, fitOpenFiles } from './cut-connections.ts'

/**
 * HEAD_MS: a request's head must arrive within this time. IDLE_MS: a connection is cut if its
 * caller should send or read, but does neither for this time.
 */
const HEAD_MS = 20_000
const IDLE_MS = 120_000
/**
 * A connection may be idle for this number of `waitSeconds`, because nothing moves while an import
 * waits to enqueue a job, then for the job's result, then for a look-up.
 */
const IDLE_WAITS = 3
/**
 * This number of connections can wait to be accepted while the event loop is busy. Linux does not
 * answer further ones.
 */
const BACKLOG = 4_096
/** If no connection is open, and no request came for this time, `linger` does not wait. */
const QUIET_MS = 5_000

interface ListenOptions extends Partial<ConnectionBounds> {
  port: number
  host: string
  headMs?: number
  idleMs?: number
  /** A caller waits at most this long for its answer. */
  waitSeconds?: number
}

/**
 * Listens for HTTP. Cuts a connection if nothing has moved for `idleMs` although the caller should
 * send or read. Never cuts it while its caller waits for us.
 * @throws Node's error if the address is in use or not permitted.
 */
export async function listen(listener: RequestListener, { port, host, ...options }: ListenOptions) {
  const { headMs = HEAD_MS, waitSeconds = 0 } = options
  const { idleMs = Math.max(IDLE_MS, IDLE_WAITS * waitSeconds * 1000) } = options
  const bounds = fitOpenFiles({ ...BOUNDS, ...options })
  const connections = boundConnections(listener, refuse, bounds)
  const server = createServer({
    keepAliveTimeout: 65_000,
    headersTimeout: headMs,
    connectionsCheckingInterval: headMs / 10,
    // Node's own time-out for a whole request would cut a large import that is still being sent.
    requestTimeout: 0,
    // The middleware checks Host. Node would answer without a problem and without X-Request-Id.
    requireHostHeader: false,
  })
  server.timeout = idleMs
  // One more than allowed, so that `serve` notices if there are too many.
  server.maxHeadersCount = MAX_HEADERS + 1
  // A caller that has sent everything may end its side before it reads the answer.
  Object.assign(server, { httpAllowHalfOpen: true })
  server.on('connection', connections.add)
  server.on('timeout', (socket: Socket) => cutIfIdle(socket, connections.responseOn(socket)))
  server.on('request', connections.serve)
  // Without these listeners, Node would ask for the body before the key is checked, or refuse
  // without a problem.
  server.on('checkContinue', connections.serve)
  server.on('checkExpectation', connections.serve)
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code === 'ECONNRESET') socket.destroy()
    // After the answer, the rest of the request is read and discarded.
    else if (!socket.writableEnded) refuse(socket, malformed(error.code))
  })
  server.on('connect', (_request, socket: Socket) => {
    socket.on('error', () => {})
    refuse(socket, 'method_not_allowed')
  })
  /** Ends a connection with a problem, but never in the middle of another answer. */
  function refuse(socket: Socket, code: ProblemCode): void {
    if (!socket.writable || connections.responseOn(socket)?.headersSent)
      return void socket.destroy()
    socket.write(messageOf(code))
    connections.closeSoon(socket)
  }
  server.listen({ port, host, backlog: BACKLOG })
  await once(server, 'listening')
  // A connection that can't be accepted, for example without a free file descriptor, must not end
  // the others.
  server.on('error', () => {})
  const address = server.address()
  /**
   * Accepts no more connections. Resolves when all open requests are answered and all connections
   * are closed.
   */
  function close(): Promise<void> {
    connections.close()
    return new Promise((resolve) => server.close(() => resolve()))
  }
  const cut = () => server.closeAllConnections()
  return {
    address,
    port: typeof address === 'object' && address !== null ? address.port : port,
    connections: connections.size,
    /** The bound of connections, and the limit of open files that may have lowered it. */
    bounds,
    /**
     * Continues to serve for `ms`, so that load balancers learn that the process stops. Does not
     * wait if no caller came recently.
     */
    async linger(ms: number): Promise<void> {
      const isQuiet = performance.now() - connections.lastRequestAt() > QUIET_MS
      if (isQuiet && connections.size() === 0) return
      await setTimeout(ms)
      // After a pause of the process, its timers run before it reads. Read what has arrived.
      await setImmediate()
    },
    close,
    /**
     * Cuts all open connections, for example if a caller neither finishes its request nor hangs up.
     */
    cut,
    /** Closes and cuts in one step. */
    end: async () => void (await Promise.all([close(), cut()])),
  }
}

/** The problem of a message that Node could not parse, by the code of its error. */
function malformed(code: string | undefined): ProblemCode {
  if (code === 'HPE_HEADER_OVERFLOW') return 'headers_too_large'
  return code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'request_timeout' : 'body_unreadable'
}

const NOT_HTTP = 'This is not a valid HTTP request.'
const MEMBERS: Partial<Record<ProblemCode, Omit<ProblemMembers, 'requestId'>>> = {
  headers_too_large: {
    detail: `The head of a request may have at most ${maxHeaderSize} bytes and ${MAX_HEADERS} headers.`,
  },
  body_unreadable: {
    detail: NOT_HTTP,
    errors: [{ pointer: '', code: 'not_http', message: NOT_HTTP }],
    total: 1,
  },
}

/** Makes the complete answer that reports a problem, for a socket without a response. */
function messageOf(code: ProblemCode): string {
  const requestId = randomUUID()
  const body = JSON.stringify(createProblem(code, { ...MEMBERS[code], requestId }))
  const { status } = PROBLEMS[code]
  const headers = {
    'content-type': PROBLEM_MEDIA_TYPE,
    'content-length': Buffer.byteLength(body),
    'x-request-id': requestId,
    ...(status === 503 && { 'retry-after': randomInt(1, 4) }),
    ...(status === 405 && { allow: 'GET, HEAD, POST' }),
    connection: 'close',
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`
}
