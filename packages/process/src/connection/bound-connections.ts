// Bounds the connections of a server, and each connection's pipelined requests (requests that a
// caller sends before it has got the previous answer).
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
  /** When the connection became idle, or when its next head began to arrive, in monotonic ms. */
  since: number
  /** The received bytes that do not belong to a parsed request or body yet. */
  pending: number
}

/**
 * A caller that has ended its side gets an answer for this time. It is short, because most such
 * callers have hung up.
 */
const LAST_READ_MS = 1_000
/**
 * After we have ended a connection, its caller may still send for this time. What it sends is
 * discarded.
 */
const LAST_SENT_MS = 5_000
/** The connection closes after this number of pipelined requests. */
const PIPELINED = 16

/**
 * The most headers of a request. A request with more is refused, because Node may drop further ones
 * silently.
 */
export const MAX_HEADERS = 100

/**
 * Keeps track of the open connections.
 * @param listener gets the requests. Each connection passes on one request at a time.
 * @param refuse answers with a problem, and closes the connection.
 */
export function boundConnections(
  listener: RequestListener,
  refuse: (socket: Socket, code: 'overloaded' | 'headers_too_large') => void,
  { maxConnections, surplus, leastIdleMs, maxUnreadBytes, maxPendingBytes }: ConnectionBounds,
) {
  const open = new Map<Socket, Connection>()
  /**
   * `idle`: connections that have sent nothing since their last answer. `arriving`: connections
   * whose next head is arriving. Both are ordered by age, oldest first.
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
   * Ends our side of a connection. Does not close it yet, because a reset would destroy answers
   * that are on their way.
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
    // A feed passes on no request while another one is in progress, unless Node's parser disagrees
    // about where that one ends.
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
      // Node calls `destroySoon` after the last answer. If it closed the connection, a caller that
      // still sends would be reset.
      socket.destroySoon = () => closeSoon(socket)
      socket.on('end', () => feed.responseInProgress() && cutAfter(socket, LAST_READ_MS))
      socket.once('close', () => forget(connection))
      if (isSurplus) refuse(socket, 'overloaded')
    },
    /**
     * From now on, closes each connection when it has no request. Node would close only the
     * connections that are idle now.
     */
    close(): void {
      isClosing = true
      clearInterval(sweeps)
      // Node does not count a connection as idle before its first byte has arrived.
      for (const { socket } of idle) if (socket.writable) socket.destroy()
    },
  }
}
