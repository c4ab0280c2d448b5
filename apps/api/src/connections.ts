// Bounds what connections cost: their number, the requests that one sends ahead, and the bytes that nobody reads.
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { endWithProblem, overloaded } from './problems.ts'

/** The bounds of all connections together, and of each. */
export interface ConnectionBounds {
  /** Beyond this number, a connection gets one answer, a 503, and is closed. */
  maxConnections: number
  /** The size of all answers that were written and not read, in bytes. Beyond it, those with the most unread are cut. */
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
}

type Exchange = [request: IncomingMessage, response: ServerResponse & { req: IncomingMessage }]

/** The connections of a server. */
export interface Connections {
  size(): number
  /** When the last request arrived, on the monotonic clock, in ms. */
  lastRequestAt(): number
  /** The response in progress on a connection. */
  responseOn(socket: Socket): ServerResponse | undefined
  onRequest: RequestListener
  /** Ends what runs in the background. */
  close(): void
}

/** A connection with more requests ahead is not read until some are answered. */
const AHEAD_PER_CONNECTION = 16
/** How many requests may wait ahead on all connections. One read can bring 2,500 of them, at some 3 KB each. */
const AHEAD_IN_ALL = 10_000
/** How many connections more than the bound get an answer, and for how long they may stay, in ms. All others are cut. */
const SURPLUS = 1_000
const SURPLUS_MS = 2_000
/** How long a caller that sends no more, but may still read, is waited for, in ms. Most such callers have hung up. */
const HALF_CLOSED_MS = 1_000
const SWEEP_MS = 250

/** Watches a server's connections and passes their requests on, one at a time for each. */
export function boundConnections(server: Server, listener: RequestListener, bounds: ConnectionBounds): Connections {
  const connections = new Map<Socket, Connection>()
  let aheadInAll = 0
  let lastRequestAt = Number.NEGATIVE_INFINITY

  function onConnection(socket: Socket): void {
    if (connections.size >= bounds.maxConnections + SURPLUS) return void socket.destroy()
    const isSurplus = connections.size >= bounds.maxConnections
    const connection: Connection = { socket, isSurplus, response: undefined, ahead: [] }
    connections.set(socket, connection)
    const timer = isSurplus ? setTimeout(() => socket.destroy(), SURPLUS_MS) : undefined
    socket.on('resume', () => pauseIfAhead(connection))
    socket.on('end', () => connection.response && setTimeout(() => socket.destroy(), HALF_CLOSED_MS).unref())
    socket.once('close', () => {
      clearTimeout(timer)
      connections.delete(socket)
      aheadInAll -= connection.ahead.length
      connection.ahead = []
    })
  }

  const onRequest: RequestListener = (request, response) => {
    const connection = connections.get(request.socket)
    if (connection === undefined || request.socket.destroyed) return
    lastRequestAt = performance.now()
    if (connection.response === undefined) return serve(connection, [request, response])
    connection.ahead.push([request, response])
    aheadInAll += 1
    if (aheadInAll > AHEAD_IN_ALL) request.socket.destroy()
    else pauseIfAhead(connection)
  }

  function serve(connection: Connection, [request, response]: Exchange): void {
    connection.response = response
    response.on('timeout', () => cutIfIdle(request, response, bounds.idleMs))
    response.once('close', () => serveNext(connection))
    if (connection.isSurplus) refuse(request)
    else listener(request, response)
  }

  function serveNext(connection: Connection): void {
    connection.response = undefined
    const next = connection.socket.destroyed ? undefined : connection.ahead.shift()
    if (next === undefined) return
    aheadInAll -= 1
    if (connection.ahead.length === AHEAD_PER_CONNECTION) connection.socket.resume()
    serve(connection, next)
  }

  server.prependListener('connection', onConnection)
  const sweep = setInterval(() => cutUnread([...connections.keys()], bounds.maxUnreadBytes), SWEEP_MS).unref()
  return {
    size: () => connections.size,
    lastRequestAt: () => lastRequestAt,
    responseOn: (socket) => connections.get(socket)?.response,
    onRequest,
    close: () => clearInterval(sweep),
  }
}

/** Reading the body of the request in progress, or the end of an answer, makes Node resume the socket. */
function pauseIfAhead({ socket, ahead }: Connection): void {
  if (ahead.length > AHEAD_PER_CONNECTION) socket.pause()
}

function refuse(request: IncomingMessage): void {
  endWithProblem(request.resume().socket, overloaded())
}

function cutIfIdle(request: IncomingMessage, response: ServerResponse, idleMs: number): void {
  // If the body waits for us to read it, its sender is not idle.
  const awaitsBody = !request.complete && request.readableLength === 0 && !request.isPaused()
  const isUnread = request.complete && response.writableLength > 0
  if (awaitsBody || isUnread) request.socket.destroy()
  else request.socket.setTimeout(idleMs)
}

/** Cuts the connections with the most unread bytes until the rest keep the bound. */
function cutUnread(sockets: readonly Socket[], maxBytes: number): void {
  let bytes = sockets.reduce((sum, socket) => sum + socket.writableLength, 0)
  if (bytes <= maxBytes) return
  for (const socket of sockets.toSorted((a, b) => b.writableLength - a.writableLength)) {
    if (bytes <= maxBytes) return
    bytes -= socket.writableLength
    socket.destroy()
  }
}
