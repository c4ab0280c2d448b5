// Bounds the connections of a server, and the pipelined requests of each: those that a caller sends
// before it has the previous answer.
import type { RequestListener } from 'node:http'
import type { Socket } from 'node:net'
import {
  type ConnectionBounds,
  createTurns,
  createUnreadCutter,
  cutAfter,
  SWEEP_MS,
} from './cut-connections.ts'
import { type Feed, feedParser } from './feed-parser.ts'

interface Connection {
  socket: Socket
  feed: Feed
  /** The number of requests since the connection was idle. */
  pipelined: number
  /** When the connection became idle, or its next head began to arrive, in monotonic ms. */
  since: number
  /** The received bytes that are not part of a parsed request or body yet. */
  pending: number
}

/**
 * The time to answer a caller that has ended its side. It is short, because most of these callers
 * have hung up.
 */
const LAST_READ_MS = 1_000
/**
 * How long a caller may still send after we have ended a connection. What it sends is discarded.
 */
const LAST_SENT_MS = 5_000
/** After this many pipelined requests, the connection closes. */
const PIPELINED = 16

/**
 * The most headers of a request. Node may drop the others silently, so a request with more is
 * refused.
 */
export const MAX_HEADERS = 100

/**
 * Keeps track of the open connections. `listener` gets the requests, one at a time of each
 * connection. `refuse` answers with a problem, and closes the connection.
 */
export function boundConnections(
  listener: RequestListener,
  refuse: (socket: Socket, code: 'overloaded' | 'headers_too_large') => void,
  { maxConnections, surplus, leastIdleMs, maxUnreadBytes, maxPendingBytes }: ConnectionBounds,
) {
  const open = new Map<Socket, Connection>()
  /**
   * Connections that have sent nothing since their last answer, and those whose head is arriving;
   * oldest first.
   */
  const idle = new Set<Connection>()
  const arriving = new Set<Connection>()
  const later = createTurns()
  let pendingBytes = 0
  const cutUnread = createUnreadCutter(maxUnreadBytes)
  const sweeps = setInterval(() => cutUnread(open.keys()), SWEEP_MS).unref()
  let lastRequestAt = Number.NEGATIVE_INFINITY
  let isClosing = false

  function onAnswered(connection: Connection): void {
    connection.pipelined = 0
    if (isClosing) return void connection.socket.destroySoon()
    if (connection.socket.writable) becomeIdle(connection)
  }

  function becomeIdle(connection: Connection): void {
    connection.since = performance.now()
    idle.add(connection)
  }

  /**
   * Ends our side of a connection, but does not close it at once: a reset would destroy answers on
   * their way.
   */
  function closeSoon(socket: Socket): void {
    const connection = open.get(socket)
    if (connection === undefined) return void socket.destroy()
    connection.feed.stop()
    socket.end()
    cutAfter(socket, LAST_SENT_MS)
    becomeIdle(connection)
  }

  function forget(connection: Connection): void {
    open.delete(connection.socket)
    idle.delete(connection)
    arriving.delete(connection)
    pendingBytes -= connection.pending
    connection.pending = 0
  }

  function cut(connection: Connection): void {
    forget(connection)
    connection.socket.destroy()
  }

  /**
   * Cuts the connection that has been idle, or whose head has been arriving, for the longest time,
   * if that is at least `leastIdleMs`. Returns whether it cut one.
   */
  function cutLongest(): boolean {
    const [idles] = idle
    const [arrives] = arriving
    const longest =
      arrives === undefined || (idles !== undefined && idles.since < arrives.since)
        ? idles
        : arrives
    if (longest === undefined || performance.now() - longest.since < leastIdleMs) return false
    cut(longest)
    return true
  }

  function onPending(connection: Connection, bytes: number): void {
    if (!open.has(connection.socket)) return
    pendingBytes += bytes - connection.pending
    connection.pending = bytes
    if (
      bytes > 0 &&
      connection.feed.responseInProgress() === undefined &&
      !arriving.has(connection)
    ) {
      idle.delete(connection)
      connection.since = performance.now()
      arriving.add(connection)
    }
    while (pendingBytes > maxPendingBytes) {
      const [longest = connection] = arriving
      cut(longest)
      if (longest === connection) return
    }
  }

  const serve: RequestListener = (request, response) => {
    const { socket } = request
    const connection = open.get(socket)
    // A feed passes on no request while another is in progress, unless Node's parser disagrees on
    // where that one ends.
    if (connection === undefined || connection.feed.responseInProgress())
      return void socket.destroy()
    lastRequestAt = performance.now()
    connection.feed.begin(response, () => onAnswered(connection))
    idle.delete(connection)
    arriving.delete(connection)
    connection.pipelined += 1
    if (connection.pipelined === PIPELINED) response.setHeader('connection', 'close')
    if (request.rawHeaders.length > 2 * MAX_HEADERS) refuse(socket, 'headers_too_large')
    else listener(request, response)
  }

  return {
    serve,
    closeSoon,
    size: () => open.size,
    /** When the last request arrived, on the monotonic clock, in ms. */
    lastRequestAt: () => lastRequestAt,
    responseOn: (socket: Socket) => open.get(socket)?.feed.responseInProgress(),
    add(socket: Socket): void {
      if (open.size >= maxConnections + surplus) return void socket.destroy()
      const isSurplus = open.size >= maxConnections && !cutLongest()
      const feed = feedParser(socket, later, (bytes) => onPending(connection, bytes))
      const connection = { socket, feed, pipelined: 0, since: 0, pending: 0 }
      open.set(socket, connection)
      becomeIdle(connection)
      // Node calls `destroySoon` after the last answer. Closing would reset a caller that still
      // sends.
      socket.destroySoon = () => closeSoon(socket)
      socket.on('end', () => feed.responseInProgress() && cutAfter(socket, LAST_READ_MS))
      socket.once('close', () => forget(connection))
      if (isSurplus) refuse(socket, 'overloaded')
    },
    /**
     * From now on, closes each connection once it has no request: Node closes only those that are
     * idle right now.
     */
    close(): void {
      isClosing = true
      clearInterval(sweeps)
      // Node does not count a connection as idle before its first byte.
      for (const { socket } of idle) if (socket.writable) socket.destroy()
    },
  }
}
