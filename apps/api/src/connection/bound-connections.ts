// Serves the requests of each connection one after the other, and bounds the number of connections and of requests sent ahead.
import { IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import {
  type ConnectionBounds,
  createUnreadCutter,
  cutAfter,
  cutIfIdle,
  type IdleConnection,
  SWEEP_MS,
  takeLongestIdle,
} from './cut-connections.ts'

interface Connection extends IdleConnection {
  /** Beyond the bound: it gets one answer, a 503. */
  isSurplus: boolean
  /** The response in progress. */
  response: ServerResponse | undefined
  /** Requests that were sent before the answer to the one in progress, oldest first. */
  ahead: Exchange[]
}

type Exchange = [request: IncomingMessage, response: ServerResponse & { req: IncomingMessage }]

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

/**
 * Watches the connections of a server, which is to call `onConnection` and `onRequest`.
 *
 * @param listener gets the requests, one at a time of each connection.
 * @param refuse answers those of a connection beyond the bound, and closes it.
 */
export function boundConnections(listener: RequestListener, refuse: RequestListener, bounds: ConnectionBounds) {
  const connections = new Map<Socket, Connection>()
  /** Those without a request in progress, the longest idle first. */
  const idle = new Set<IdleConnection>()
  let aheadInAll = 0
  let lastRequestAt = Number.NEGATIVE_INFINITY
  let isClosing = false

  function onConnection(socket: Socket): void {
    if (connections.size >= bounds.maxConnections + SURPLUS) return void socket.destroy()
    const isSurplus = connections.size >= bounds.maxConnections && !closeIdle()
    const connection: Connection = { socket, isSurplus, response: undefined, ahead: [], idleSince: 0, idleBytes: 0 }
    connections.set(socket, connection)
    if (isSurplus) cutAfter(socket, SURPLUS_MS)
    else noteIdle(connection)
    socket.on('resume', () => pauseIfAhead(connection))
    socket.on('end', () => connection.response && cutAfter(socket, HALF_CLOSED_MS))
    socket.once('close', () => {
      connections.delete(socket)
      idle.delete(connection)
      aheadInAll -= connection.ahead.length
      connection.ahead = []
    })
  }

  /** Returns false if no connection is idle for long enough. */
  function closeIdle(): boolean {
    const socket = takeLongestIdle(idle, bounds.leastIdleMs)
    if (socket === undefined) return false
    connections.delete(socket)
    socket.destroy()
    return true
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
    if (connection.isSurplus) refuse(request, response)
    else listener(request, response)
  }

  function serveNext(connection: Connection): void {
    const next = connection.response !== undefined || connection.socket.destroyed ? undefined : connection.ahead.shift()
    if (next === undefined) return
    aheadInAll -= 1
    if (connection.ahead.length === AHEAD_PER_CONNECTION) connection.socket.resume()
    serve(connection, next)
  }

  const cutUnread = createUnreadCutter(bounds.maxUnreadBytes)
  let unread: Socket[] = []
  const sweeps = setInterval(() => {
    const before = unread.length
    unread = [...connections.keys()].filter(({ writableLength }) => writableLength > 0)
    if (unread.length > 0 || before > 0) cutUnread(unread)
  }, SWEEP_MS).unref()
  const isTooFarAhead = (socket: Socket) =>
    aheadInAll >= AHEAD_IN_ALL && connections.get(socket)?.response !== undefined
  return {
    size: () => connections.size,
    /** When the last request arrived, on the monotonic clock, in ms. */
    lastRequestAt: () => lastRequestAt,
    /** The response in progress on a connection. */
    responseOn: (socket: Socket) => connections.get(socket)?.response,
    onConnection,
    onRequest,
    /** The class of the server's requests: it stops the parser, where nothing else can, once too many are ahead. */
    Request: stopWhen(isTooFarAhead),
    /** From now on a connection is closed as soon as it has no request: Node closes those that idle only at the moment when the server closes. */
    close(): void {
      isClosing = true
      clearInterval(sweeps)
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
