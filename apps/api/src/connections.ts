// Bounds what connections cost: their number, the requests that one sends ahead, and the bytes that nobody reads.
import { randomUUID } from 'node:crypto'
import { IncomingMessage, type RequestListener, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { PROBLEM_MEDIA_TYPE, PROBLEMS } from '@sluice/contract'
import { overloaded, type ProblemError, problemBody } from './problems.ts'

/** The bounds of all connections together, and of each. */
export interface ConnectionBounds {
  /** Beyond this number, an idle connection is closed for a new one. If none is idle, the new one gets one answer, a 503, and is closed. */
  maxConnections: number
  /** A connection that idles for less is not closed for a new one, in ms: its caller may use it right now. */
  leastIdleMs: number
  /** The size of all answers that were written and not read, in bytes. Beyond it, callers that do not read are cut. */
  maxUnreadBytes: number
  /** How long a connection may idle while the caller should send or read, in ms. */
  idleMs: number
}

/** One connection, whose requests are served one after the other. */
interface Connection {
  socket: Socket
  isSurplus: boolean
  /** The response in progress. */
  response: ServerResponse | undefined
  /** Requests that were sent before the answer to the one in progress, oldest first. */
  ahead: Exchange[]
  /** When it became idle, on the monotonic clock, in ms, and how many bytes its caller had sent by then. */
  idleSince: number
  idleBytes: number
  /** How many bytes the system had taken for the caller when it last read enough, and the sweeps since then. */
  readBytes: number
  stalledSweeps: number
}

const NEW_CONNECTION = { response: undefined, readBytes: 0, stalledSweeps: 0, idleSince: 0, idleBytes: 0 }

type Exchange = [request: IncomingMessage, response: ServerResponse & { req: IncomingMessage }]

/** The connections of a server. */
export interface Connections {
  size(): number
  /** When the last request arrived, on the monotonic clock, in ms. */
  lastRequestAt(): number
  /** The response in progress on a connection. */
  responseOn(socket: Socket): ServerResponse | undefined
  onConnection(socket: Socket): void
  onRequest: RequestListener
  /** The class of the server's requests: it stops the parser, where nothing else can, once too many are ahead. */
  Request: typeof IncomingMessage
  /** From now on a connection is closed as soon as it has no request: Node closes those that idle only at the moment when the server closes. */
  close(): void
}

/** A connection with more requests ahead is not read until some are answered. */
const AHEAD_PER_CONNECTION = 16
/**
 * How many requests may wait ahead on all connections. Beyond it, a connection that sends another one is cut. Node parses all that
 * one read brings, 2,500 requests of 2.4 KB of memory each, and frees the memory of closed connections only later.
 */
const AHEAD_IN_ALL = 10_000
/** How many connections more than the bound get an answer, and for how long they may stay, in ms. All others are cut. */
const SURPLUS = 1_000
const SURPLUS_MS = 2_000
/** How long a caller that sends no more, but may still read, is waited for, in ms. Most such callers have hung up. */
const HALF_CLOSED_MS = 1_000
const SWEEP_MS = 250

/** Watches the connections of a server, which is to call `onConnection` and `onRequest`, and passes their requests on, one at a time for each. */
export function boundConnections(listener: RequestListener, bounds: ConnectionBounds): Connections {
  const connections = new Map<Socket, Connection>()
  /** Those without a request in progress, the longest idle first. */
  const idle = new Set<Connection>()
  let aheadInAll = 0
  let lastRequestAt = Number.NEGATIVE_INFINITY
  let isClosing = false

  function onConnection(socket: Socket): void {
    if (connections.size >= bounds.maxConnections + SURPLUS) return void socket.destroy()
    const isSurplus = connections.size >= bounds.maxConnections && !closeIdle()
    const connection: Connection = { ...NEW_CONNECTION, socket, isSurplus, ahead: [] }
    connections.set(socket, connection)
    if (!isSurplus) noteIdle(connection)
    const timer = isSurplus ? setTimeout(() => socket.destroy(), SURPLUS_MS) : undefined
    socket.on('resume', () => pauseIfAhead(connection))
    socket.on('end', () => connection.response && setTimeout(() => socket.destroy(), HALF_CLOSED_MS).unref())
    socket.once('close', () => {
      clearTimeout(timer)
      connections.delete(socket)
      idle.delete(connection)
      aheadInAll -= connection.ahead.length
      connection.ahead = []
    })
  }

  function noteIdle(connection: Connection): void {
    connection.idleSince = performance.now()
    connection.idleBytes = connection.socket.bytesRead
    idle.add(connection)
  }

  /** Closes the connection that is idle for the longest time. Returns false if none is idle for long enough. */
  function closeIdle(): boolean {
    const latest = performance.now() - bounds.leastIdleMs
    for (const connection of idle) {
      if (connection.idleSince > latest) return false
      idle.delete(connection)
      const { socket, idleBytes } = connection
      // The head of a request is arriving.
      if (socket.bytesRead > idleBytes) continue
      connections.delete(socket)
      socket.destroy()
      return true
    }
    return false
  }

  const onRequest: RequestListener = (request, response) => {
    const connection = connections.get(request.socket)
    if (connection === undefined || request.socket.destroyed) return
    lastRequestAt = performance.now()
    if (connection.response === undefined && connection.ahead.length === 0)
      return serve(connection, [request, response])
    connection.ahead.push([request, response])
    aheadInAll += 1
    pauseIfAhead(connection)
  }

  function serve(connection: Connection, [request, response]: Exchange): void {
    connection.response = response
    idle.delete(connection)
    response.on('timeout', () => cutIfIdle(request, response, bounds.idleMs))
    response.once('close', () => {
      connection.response = undefined
      // Other connections come first, however many requests this one has sent ahead.
      if (connection.ahead.length > 0) setImmediate(serveNext, connection)
      else if (isClosing) connection.socket.destroySoon()
      else if (!connection.socket.destroyed && !connection.isSurplus) noteIdle(connection)
    })
    if (connection.isSurplus) refuse(request)
    else listener(request, response)
  }

  function serveNext(connection: Connection): void {
    const next = connection.response !== undefined || connection.socket.destroyed ? undefined : connection.ahead.shift()
    if (next === undefined) return
    aheadInAll -= 1
    if (connection.ahead.length === AHEAD_PER_CONNECTION) connection.socket.resume()
    serve(connection, next)
  }

  const isTooFarAhead = (socket: Socket) =>
    aheadInAll >= AHEAD_IN_ALL && connections.get(socket)?.response !== undefined
  const sweep = setInterval(() => cutUnread([...connections.values()], bounds.maxUnreadBytes), SWEEP_MS).unref()
  return {
    size: () => connections.size,
    lastRequestAt: () => lastRequestAt,
    responseOn: (socket) => connections.get(socket)?.response,
    onConnection,
    onRequest,
    Request: stopWhen(isTooFarAhead),
    close() {
      isClosing = true
      clearInterval(sweep)
      // Node does not count those as idle that never sent a byte.
      for (const { socket, idleBytes } of idle) if (socket.bytesRead === idleBytes) socket.destroy()
    },
  }
}

/**
 * Node stops parsing at a request that asks for an upgrade, and closes its connection if nobody handles upgrades. So a request that
 * must not be parsed any further says that it is one.
 */
function stopWhen(isOver: (socket: Socket) => boolean): typeof IncomingMessage {
  class Request extends IncomingMessage {
    get upgrade(): boolean {
      return this.method === 'CONNECT' || isOver(this.socket)
    }
    set upgrade(_: boolean) {}
  }
  return Request
}

/** Reading the body of the request in progress, or the end of an answer, makes Node resume the socket. */
function pauseIfAhead({ socket, ahead }: Connection): void {
  if (ahead.length > AHEAD_PER_CONNECTION) socket.pause()
}

function refuse(request: IncomingMessage): void {
  endWithProblem(request.resume().socket, overloaded())
}

/** How long a caller may take to read a problem and to hang up, in ms. */
const LAST_READ_MS = 1_000

/** Answers on the bare socket, where HTTP gives no response to answer with, and closes it. */
export function endWithProblem(socket: Socket, problem: ProblemError): void {
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
  socket.setTimeout(LAST_READ_MS, () => socket.destroy())
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`)
}

function cutIfIdle(request: IncomingMessage, response: ServerResponse, idleMs: number): void {
  // If the body waits for us to read it, its sender is not idle.
  const awaitsBody = !request.complete && request.readableLength === 0 && !request.isPaused()
  const isUnread = request.complete && response.writableLength > 0
  if (awaitsBody || isUnread) request.socket.destroy()
  else request.socket.setTimeout(idleMs)
}

/**
 * Cuts connections until what is unread on all of them keeps the bound: those with the most first, but none whose caller reads.
 * Called every `SWEEP_MS`.
 */
function cutUnread(connections: readonly Connection[], maxBytes: number): void {
  let bytes = connections.reduce((sum, { socket }) => sum + socket.writableLength, 0)
  const stalled = connections.filter(isStalled)
  if (bytes <= maxBytes) return
  for (const { socket } of stalled.toSorted((a, b) => b.socket.writableLength - a.socket.writableLength)) {
    if (bytes <= maxBytes) return
    bytes -= socket.writableLength
    socket.destroy()
  }
}

/** A caller that reads less than this in as many sweeps, 2 s, counts as one that does not read. */
const READ_BYTES = 64 * 1024
const STALLED_SWEEPS = 8

function isStalled(connection: Connection): boolean {
  const { socket, readBytes } = connection
  const nowRead = socket.bytesWritten - socket.writableLength
  if (socket.writableLength === 0 || nowRead - readBytes >= READ_BYTES) {
    connection.readBytes = nowRead
    connection.stalledSweeps = 0
  } else connection.stalledSweeps += 1
  return connection.stalledSweeps >= STALLED_SWEEPS
}
