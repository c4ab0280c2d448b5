// Opens and closes the connections of a server, within bounds, and passes on their requests. It bounds the pipelined ones:
// those that are sent before the answer to the one before.
import type { RequestListener } from 'node:http'
import type { Socket } from 'node:net'
import { overloaded, type ProblemError } from '../request/problem-error.ts'
import type { ConnectionBounds, IdleConnection } from './cut-connections.ts'
import { createUnreadCutter, cutAfter, cutLongestIdle, SWEEP_MS } from './cut-connections.ts'
import { type Feed, feedParser } from './feed-parser.ts'
import { createTurns } from './pace.ts'

interface Connection extends IdleConnection {
  feed: Feed
  /** Beyond the bound: it gets one answer, a 503. */
  isSurplus: boolean
  /** The requests that were answered without a pause of the caller between them. */
  pipelined: number
}

/** The connections beyond the bound that get an answer, and how long each may stay. All others are cut at once. */
const SURPLUS = 1_000
const SURPLUS_MS = 2_000
/** How long a caller may read after it or we have ended a connection. Most callers that half-close have hung up. */
const LAST_READ_MS = 1_000
/** The last of this number of pipelined requests closes its connection. */
const PIPELINED = 16

/**
 * Keeps the open connections.
 *
 * @param listener gets the requests, one at a time of each connection.
 * @param refuse answers with a problem, and closes the connection.
 */
export function boundConnections(
  listener: RequestListener,
  refuse: (socket: Socket, problem: ProblemError) => void,
  { maxConnections, leastIdleMs, maxUnreadBytes, maxUnparsedBytes }: ConnectionBounds,
) {
  const open = new Map<Socket, Connection>()
  /** Connections without a request in progress, the longest idle first. */
  const idle = new Set<Connection>()
  const later = createTurns()
  /** What was received on all connections and is not parsed. */
  const unparsed = { bytes: 0 }
  const cutUnread = createUnreadCutter(maxUnreadBytes)
  const sweeps = setInterval(() => cutUnread(open.keys()), SWEEP_MS).unref()
  let lastRequestAt = Number.NEGATIVE_INFINITY
  let isClosing = false

  function onAnswered(connection: Connection): void {
    const { socket, feed, isSurplus } = connection
    if (feed.hasMore()) return void later(() => socket.resume())
    connection.pipelined = 0
    socket.resume()
    if (isClosing) return void socket.destroySoon()
    if (!socket.writable || isSurplus) return
    connection.idleSince = performance.now()
    connection.idleBytes = socket.bytesRead
    idle.add(connection)
  }

  /** Ends a connection, but does not close it at once: a reset would destroy answers on their way. */
  function closeSoon(socket: Socket): void {
    open.get(socket)?.feed.stop()
    socket.end()
    cutAfter(socket, LAST_READ_MS)
  }

  /** Passes on a request. */
  const serve: RequestListener = (request, response) => {
    const { socket } = request
    const connection = open.get(socket)
    // The parser never gets a request while another one is in progress, if it agrees where that one ends.
    if (connection === undefined || connection.feed.responseInProgress()) return void socket.destroy()
    const { feed } = connection
    lastRequestAt = performance.now()
    feed.begin(response, () => onAnswered(connection))
    idle.delete(connection)
    connection.pipelined += 1
    if (connection.pipelined === PIPELINED || (unparsed.bytes > maxUnparsedBytes && feed.hasMore())) {
      response.setHeader('connection', 'close')
      // If more was sent, Node would reset the connection, and with it answers on their way.
      socket.destroySoon = () => closeSoon(socket)
    }
    if (connection.isSurplus) refuse(socket, overloaded())
    else listener(request, response)
  }

  return {
    serve,
    closeSoon,
    /** The number of open connections. */
    size: () => open.size,
    /** When the last request arrived, on the monotonic clock, in ms. */
    lastRequestAt: () => lastRequestAt,
    responseOn: (socket: Socket) => open.get(socket)?.feed.responseInProgress(),
    add(socket: Socket): void {
      if (open.size >= maxConnections + SURPLUS) return void socket.destroy()
      const isSurplus = open.size >= maxConnections && !cutLongestIdle(idle, leastIdleMs)
      const feed = feedParser(socket, unparsed, later, (problem) => refuse(socket, problem))
      const idleSince = performance.now()
      const connection = { socket, feed, isSurplus, pipelined: 0, idleSince, idleBytes: socket.bytesRead }
      open.set(socket, connection)
      if (isSurplus) cutAfter(socket, SURPLUS_MS)
      else idle.add(connection)
      socket.on('end', () => feed.responseInProgress() && cutAfter(socket, LAST_READ_MS))
      socket.once('close', () => {
        open.delete(socket)
        idle.delete(connection)
      })
    },
    /** From now on a connection is closed when it has no request: Node closes idle ones only as the server closes. */
    close(): void {
      isClosing = true
      clearInterval(sweeps)
      // Node does not count a connection as idle before its first byte.
      for (const { socket, idleBytes } of idle) if (socket.bytesRead === idleBytes) socket.destroy()
    },
  }
}
