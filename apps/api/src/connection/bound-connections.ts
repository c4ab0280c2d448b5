// Bounds the connections, and the pipelined requests of each: those that are sent before the answer to the one before.
import type { RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type ConnectionBounds, createUnreadCutter, cutAfter, cutIfIdle, SWEEP_MS } from './cut-connections.ts'
import { type Feed, feedParser } from './feed-parser.ts'

interface Connection {
  socket: Socket
  feed: Feed
  /** Beyond the bound: it gets one answer, a 503. */
  isSurplus: boolean
  /** The response in progress. */
  response?: ServerResponse | undefined
  /** The requests that were answered without a pause of the caller between them. */
  pipelined: number
  /** When it became idle, on the monotonic clock, in ms, and how many bytes its caller had sent by then. */
  idleSince: number
  idleBytes: number
}

/** The last of this number of pipelined requests closes its connection. */
const PIPELINED = 16
/** The connections beyond the bound that get an answer, and how long each may stay. All others are cut at once. */
const SURPLUS = 1_000
const SURPLUS_MS = 2_000
/** A half-closed connection may stay for this time: its caller may still read. Most such callers have hung up. */
const HALF_CLOSED_MS = 1_000
/** The time in which a caller must read a last answer and hang up. */
const LAST_READ_MS = 1_000

/**
 * Watches the connections of a server, which is to call `onConnection` and `onRequest`.
 *
 * @param listener gets the requests, one at a time of each connection.
 * @param refuse answers those of a connection beyond the bound, and closes it.
 * @param refuseChunks answers a body whose chunks are too small, and closes its connection.
 */
export function boundConnections(
  listener: RequestListener,
  { refuse, refuseChunks }: { refuse: RequestListener; refuseChunks: (socket: Socket) => void },
  bounds: ConnectionBounds,
) {
  const connections = new Map<Socket, Connection>()
  /** Connections without a request in progress, the longest idle first. */
  const idle = new Set<Connection>()
  /** What `later` runs. */
  const waiting: (() => void)[] = []
  const unparsed = { bytes: 0 }
  let lastRequestAt = Number.NEGATIVE_INFINITY
  let isClosing = false

  function onConnection(socket: Socket): void {
    if (connections.size >= bounds.maxConnections + SURPLUS) return void socket.destroy()
    const isSurplus = connections.size >= bounds.maxConnections && !closeIdle()
    const isAnswering = () => connection.response !== undefined
    const feed = feedParser(socket, unparsed, later, { isAnswering, onTinyChunks: () => refuseChunks(socket) })
    const connection: Connection = { socket, feed, isSurplus, pipelined: 0, idleSince: 0, idleBytes: 0 }
    connections.set(socket, connection)
    if (isSurplus) cutAfter(socket, SURPLUS_MS)
    else noteIdle(connection)
    socket.on('end', () => connection.response && cutAfter(socket, HALF_CLOSED_MS))
    socket.once('close', () => {
      connections.delete(socket)
      idle.delete(connection)
    })
  }

  /** Closes the connection that idles longest, if one idles for `leastIdleMs`. */
  function closeIdle(): boolean {
    const latest = performance.now() - bounds.leastIdleMs
    for (const connection of idle) {
      const { socket, idleSince, idleBytes } = connection
      if (idleSince > latest) return false
      idle.delete(connection)
      // If its caller has sent more, the head of a request is arriving.
      if (socket.bytesRead === idleBytes) return connections.delete(socket.destroy())
    }
    return false
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
    if (connection === undefined || connection.response !== undefined) return void socket.destroy()
    lastRequestAt = performance.now()
    connection.response = response
    connection.feed.begin(request)
    idle.delete(connection)
    connection.pipelined += 1
    if (connection.pipelined === PIPELINED || (unparsed.bytes > bounds.maxUnparsedBytes && connection.feed.hasMore())) {
      response.setHeader('connection', 'close')
      // If more was sent, Node would reset the connection, and with it answers on their way.
      socket.destroySoon = () => closeSoon(socket, { isDiscarding: false })
    }
    response.on('timeout', () => cutIfIdle(request, response, bounds.idleMs))
    response.once('close', () => onAnswered(connection))
    if (connection.isSurplus) refuse(request, response)
    else listener(request, response)
  }

  function onAnswered(connection: Connection): void {
    const { socket, feed } = connection
    connection.response = undefined
    if (feed.hasMore()) {
      later(() => socket.resume())
      return
    }
    connection.pipelined = 0
    socket.resume()
    if (isClosing) socket.destroySoon()
    else if (socket.writable && !connection.isSurplus) noteIdle(connection)
  }

  /**
   * Pipelined requests and large reads come after what other callers send, one in each turn of the event loop: a turn
   * accepts one connection.
   */
  function later(run: () => void): void {
    if (waiting.push(run) === 1) setImmediate(runNext)
  }

  function runNext(): void {
    const run = waiting.shift()
    if (waiting.length > 0) setImmediate(runNext)
    run?.()
  }

  /** Ends a connection, but does not close it at once: a reset would destroy answers on their way. */
  function closeSoon(socket: Socket, how = { isDiscarding: true }): void {
    connections.get(socket)?.feed.stop(how)
    socket.end()
    cutAfter(socket, LAST_READ_MS)
  }

  const cutUnread = createUnreadCutter(bounds.maxUnreadBytes)
  let unread: Socket[] = []
  const sweeps = setInterval(() => {
    const before = unread.length
    unread = [...connections.keys()].filter(({ writableLength }) => writableLength > 0)
    if (unread.length > 0 || before > 0) cutUnread(unread)
  }, SWEEP_MS).unref()
  return {
    size: () => connections.size,
    /** When the last request arrived, on the monotonic clock, in ms. */
    lastRequestAt: () => lastRequestAt,
    /** The response in progress on a connection. */
    responseOn: (socket: Socket) => connections.get(socket)?.response,
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
