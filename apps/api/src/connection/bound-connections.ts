// Bounds the connections, and the pipelined requests of each: those that are sent before the answer to the one before.
import type { RequestListener } from 'node:http'
import type { Socket } from 'node:net'
import { overloaded, type ProblemError } from '../request/problem-error.ts'
import {
  type ConnectionBounds,
  createUnreadCutter,
  cutAfter,
  cutLongestIdle,
  type IdleConnection,
  SWEEP_MS,
} from './cut-connections.ts'
import { type Feed, feedParser } from './feed-parser.ts'
import { createTurns } from './pace.ts'

interface Connection extends IdleConnection {
  feed: Feed
  /** Beyond the bound: it gets one answer, a 503. */
  isSurplus: boolean
  /** The requests that were answered without a pause of the caller between them. */
  pipelined: number
}

/** The last of this number of pipelined requests closes its connection. */
const PIPELINED = 16
/** The connections beyond the bound that get an answer, and how long each may stay. All others are cut at once. */
const SURPLUS = 1_000
const SURPLUS_MS = 2_000
/** How long a caller may read after it or we have ended a connection. Most callers that half-close have hung up. */
const LAST_READ_MS = 1_000

/**
 * Watches the connections of a server, which is to call `onConnection` and `onRequest`.
 *
 * @param listener gets the requests, one at a time of each connection.
 * @param refuse answers with a problem, and closes the connection.
 */
export function boundConnections(
  listener: RequestListener,
  refuse: (socket: Socket, problem: ProblemError) => void,
  bounds: ConnectionBounds,
) {
  const connections = new Map<Socket, Connection>()
  /** Connections without a request in progress, the longest idle first. */
  const idle = new Set<Connection>()
  const later = createTurns()
  const unparsed = { bytes: 0 }
  const cutUnread = createUnreadCutter(bounds.maxUnreadBytes)
  const sweeps = setInterval(() => cutUnread(connections.keys()), SWEEP_MS).unref()
  let lastRequestAt = Number.NEGATIVE_INFINITY
  let isClosing = false

  function onConnection(socket: Socket): void {
    if (connections.size >= bounds.maxConnections + SURPLUS) return void socket.destroy()
    const isSurplus = connections.size >= bounds.maxConnections && !cutLongestIdle(idle, bounds.leastIdleMs)
    const feed = feedParser(socket, unparsed, later, (problem) => refuse(socket, problem))
    const connection: Connection = { socket, feed, isSurplus, pipelined: 0, idleSince: 0, idleBytes: 0 }
    connections.set(socket, connection)
    if (isSurplus) cutAfter(socket, SURPLUS_MS)
    else noteIdle(connection)
    socket.on('end', () => feed.responseInProgress() && cutAfter(socket, LAST_READ_MS))
    socket.once('close', () => {
      connections.delete(socket)
      idle.delete(connection)
    })
  }

  function noteIdle(connection: Connection): void {
    connection.idleSince = performance.now()
    connection.idleBytes = connection.socket.bytesRead
    idle.add(connection)
  }

  const onRequest: RequestListener = (request, response) => {
    const { socket } = request
    const connection = connections.get(socket)
    // The parser never gets a request while another one is in progress, if it agrees where that one ends.
    if (connection === undefined || connection.feed.responseInProgress()) return void socket.destroy()
    lastRequestAt = performance.now()
    connection.feed.begin(response, () => onAnswered(connection))
    idle.delete(connection)
    connection.pipelined += 1
    if (connection.pipelined === PIPELINED || (unparsed.bytes > bounds.maxUnparsedBytes && connection.feed.hasMore())) {
      response.setHeader('connection', 'close')
      // If more was sent, Node would reset the connection, and with it answers on their way.
      socket.destroySoon = () => closeSoon(socket)
    }
    if (connection.isSurplus) refuse(socket, overloaded())
    else listener(request, response)
  }

  function onAnswered(connection: Connection): void {
    const { socket, feed } = connection
    if (feed.hasMore()) return void later(() => socket.resume())
    connection.pipelined = 0
    socket.resume()
    if (isClosing) socket.destroySoon()
    else if (socket.writable && !connection.isSurplus) noteIdle(connection)
  }

  /** Ends a connection, but does not close it at once: a reset would destroy answers on their way. */
  function closeSoon(socket: Socket): void {
    connections.get(socket)?.feed.stop()
    socket.end()
    cutAfter(socket, LAST_READ_MS)
  }

  return {
    size: () => connections.size,
    /** When the last request arrived, on the monotonic clock, in ms. */
    lastRequestAt: () => lastRequestAt,
    responseOn: (socket: Socket) => connections.get(socket)?.feed.responseInProgress(),
    onConnection,
    onRequest,
    closeSoon,
    /** From now on a connection is closed when it has no request: Node closes idle ones only as the server closes. */
    close(): void {
      isClosing = true
      clearInterval(sweeps)
      // Node does not count a connection as idle before its first byte.
      for (const { socket, idleBytes } of idle) if (socket.bytesRead === idleBytes) socket.destroy()
    },
  }
}
