// Serves the requests of each connection one after the other, and bounds the connections and the pipelined requests.
import { IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import {
  type ConnectionBounds,
  closeLongestIdle,
  createUnreadCutter,
  cutAfter,
  cutIfIdle,
  type IdleConnection,
  SWEEP_MS,
} from './cut-connections.ts'

interface Connection extends IdleConnection {
  /** Beyond the bound: it gets one answer, a 503. */
  isSurplus: boolean
  /** The response in progress. */
  response: ServerResponse | undefined
  /** Pipelined requests: sent before the answer to the request in progress. Oldest first. */
  pipelined: Exchange[]
}

type Exchange = [request: IncomingMessage, response: ServerResponse & { req: IncomingMessage }]

/** A connection with more pipelined requests is not read until some are answered. */
const PIPELINED_PER_CONNECTION = 16
/**
 * The most pipelined requests on all connections. Beyond it, a connection that sends another one is cut. Node parses
 * all requests of one read, up to 2,500 with 2.4 KB of memory each, and frees the memory of closed connections later.
 */
const PIPELINED_IN_ALL = 10_000
/** The connections beyond the bound that get an answer, and how long each may stay. All others are cut at once. */
const SURPLUS = 1_000
const SURPLUS_MS = 2_000
/** A half-closed connection may stay for this time: its caller may still read. Most such callers have hung up. */
const HALF_CLOSED_MS = 1_000

/**
 * Watches the connections of a server, which is to call `onConnection` and `onRequest`.
 *
 * @param listener gets the requests, one at a time of each connection.
 * @param refuse answers those of a connection beyond the bound, and closes it.
 */
export function boundConnections(listener: RequestListener, refuse: RequestListener, bounds: ConnectionBounds) {
  const connections = new Map<Socket, Connection>()
  /** Connections without a request in progress, the longest idle first. */
  const idle = new Set<IdleConnection>()
  let pipelinedInAll = 0
  let lastRequestAt = Number.NEGATIVE_INFINITY
  let isClosing = false

  function onConnection(socket: Socket): void {
    if (connections.size >= bounds.maxConnections + SURPLUS) return void socket.destroy()
    const isSurplus = connections.size >= bounds.maxConnections && !closeIdle()
    const connection: Connection = { socket, isSurplus, response: undefined, pipelined: [], idleSince: 0, idleBytes: 0 }
    connections.set(socket, connection)
    if (isSurplus) cutAfter(socket, SURPLUS_MS)
    else noteIdle(connection)
    socket.on('resume', () => pauseIfPipelined(connection))
    socket.on('end', () => connection.response && cutAfter(socket, HALF_CLOSED_MS))
    socket.once('close', () => {
      connections.delete(socket)
      idle.delete(connection)
      pipelinedInAll -= connection.pipelined.length
      connection.pipelined = []
    })
  }

  function closeIdle(): boolean {
    const socket = closeLongestIdle(idle, bounds.leastIdleMs)
    return socket !== undefined && connections.delete(socket)
  }

  function noteIdle(connection: Connection): void {
    connection.idleSince = performance.now()
    connection.idleBytes = connection.socket.bytesRead
    idle.add(connection)
  }

  const onRequest: RequestListener = (request, response) => {
    const connection = connections.get(request.socket)
    if (connection === undefined || request.socket.destroyed) return
    lastRequestAt = performance.now()
    if (connection.response === undefined && connection.pipelined.length === 0)
      return serve(connection, [request, response])
    connection.pipelined.push([request, response])
    pipelinedInAll += 1
    pauseIfPipelined(connection)
  }

  function serve(connection: Connection, [request, response]: Exchange): void {
    connection.response = response
    idle.delete(connection)
    response.on('timeout', () => cutIfIdle(request, response, bounds.idleMs))
    response.once('close', () => {
      connection.response = undefined
      // Other connections come before the next pipelined request of this one.
      if (connection.pipelined.length > 0) setImmediate(serveNext, connection)
      else if (isClosing) connection.socket.destroySoon()
      else if (!connection.socket.destroyed && !connection.isSurplus) noteIdle(connection)
    })
    if (connection.isSurplus) refuse(request, response)
    else listener(request, response)
  }

  function serveNext(connection: Connection): void {
    const next =
      connection.response !== undefined || connection.socket.destroyed ? undefined : connection.pipelined.shift()
    if (next === undefined) return
    pipelinedInAll -= 1
    if (connection.pipelined.length === PIPELINED_PER_CONNECTION) connection.socket.resume()
    serve(connection, next)
  }

  const cutUnread = createUnreadCutter(bounds.maxUnreadBytes)
  let unread: Socket[] = []
  const sweeps = setInterval(() => {
    const before = unread.length
    unread = [...connections.keys()].filter(({ writableLength }) => writableLength > 0)
    if (unread.length > 0 || before > 0) cutUnread(unread)
  }, SWEEP_MS).unref()
  const isBeyondBound = (socket: Socket) =>
    pipelinedInAll >= PIPELINED_IN_ALL && connections.get(socket)?.response !== undefined
  return {
    size: () => connections.size,
    /** When the last request arrived, on the monotonic clock, in ms. */
    lastRequestAt: () => lastRequestAt,
    /** The response in progress on a connection. */
    responseOn: (socket: Socket) => connections.get(socket)?.response,
    onConnection,
    onRequest,
    /** The class of the server's requests: it stops the parser, where nothing else can, beyond `PIPELINED_IN_ALL`. */
    Request: stopWhen(isBeyondBound),
    /** From now on a connection is closed when it has no request: Node closes idle ones only as the server closes. */
    close(): void {
      isClosing = true
      clearInterval(sweeps)
      // Node does not count a connection as idle before its first byte.
      for (const { socket, idleBytes } of idle) if (socket.bytesRead === idleBytes) socket.destroy()
    },
  }
}

/**
 * Node stops parsing at a request that asks for an upgrade, and closes its connection if nobody handles upgrades. So a
 * request that must not be parsed any further says that it is one.
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
function pauseIfPipelined({ socket, pipelined }: Connection): void {
  if (pipelined.length > PIPELINED_PER_CONNECTION) socket.pause()
}
