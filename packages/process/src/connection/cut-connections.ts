// Cuts connections whose callers neither send nor read, and connections with too many unread bytes.
// Divides time among the others.
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Bounds of all connections of a server together. */
export const BOUNDS = {
  /**
   * Above this number, a new connection replaces another one: the one that has waited longest for
   * the rest of a head, or has been idle longest. If that is for less than `leastIdleMs`, its
   * caller may be using it right now, and the new connection gets a 503 instead.
   */
  maxConnections: 10_000,
  /**
   * This number of connections above `maxConnections` get a 503. Further ones are cut immediately.
   */
  surplus: 1_000,
  leastIdleMs: 1_000,
  /**
   * Bounds the bytes of all answers that were written but not read. Above it, callers that do not
   * read are cut.
   */
  maxUnreadBytes: 2 ** 28,
  /**
   * Bounds the bytes of all unfinished heads, trailers and pipelined requests. Above it, the
   * connection whose head has been arriving longest is cut. If no head is unfinished, a caller that
   * pipelines or sends trailers is cut.
   */
  maxPendingBytes: 2 ** 23,
}

export type ConnectionBounds = typeof BOUNDS

/**
 * The file descriptors that a process needs for other purposes than callers: servers, the log,
 * temporary files.
 */
const OWN_FILES = 100

/**
 * Lowers the number of connections to what `ulimit -n` (`openFiles`) allows. `needed`: a limit that
 * would allow all.
 */
export function fitOpenFiles(bounds: ConnectionBounds) {
  // Without this, a report looks up the names of all peers.
  Object.assign(process.report, { excludeNetwork: true })
  // NaN if it is `unlimited`.
  const openFiles = Number(Object(process.report.getReport()).userLimits?.open_files?.soft)
  const most = Math.max((openFiles || Number.POSITIVE_INFINITY) - OWN_FILES, 2)
  const surplus = Math.min(bounds.surplus, Math.ceil(most / 10))
  const maxConnections = Math.min(bounds.maxConnections, most - surplus)
  const needed = bounds.maxConnections + bounds.surplus + OWN_FILES
  return { ...bounds, maxConnections, surplus, openFiles, needed }
}

/** Cuts a connection that is still open after this time, in ms. */
export function cutAfter(socket: Socket, ms: number): void {
  const timer = setTimeout(() => socket.destroy(), ms).unref()
  socket.once('close', () => clearTimeout(timer))
}

/**
 * Cuts a connection on which nothing has moved for its time-out, unless its caller waits for the
 * response in progress.
 */
export function cutIfIdle(socket: Socket, response: ServerResponse | undefined): void {
  if (response === undefined) return void socket.destroy()
  const { complete, readableLength } = response.req
  // If the body waits for us to read it, the sender is not idle.
  const awaitsCaller = complete ? response.writableLength > 0 : readableLength === 0
  if (awaitsCaller) socket.destroy()
  else socket.setTimeout(socket.timeout ?? 0)
}

/**
 * Callers with unread bytes are checked this often. From one check to the next, they must read
 * `READ_BYTES` or everything.
 */
export const SWEEP_MS = 2_000
const READ_BYTES = 64 * 1024

/**
 * Makes a sweep: while all unread bytes exceed the bound, it cuts connections of stalled callers,
 * those with the most unread bytes first.
 */
export function createUnreadCutter(maxBytes: number): (connections: Iterable<Socket>) => void {
  /**
   * The bytes that each caller must have read by the next sweep, counted since its connection was
   * opened.
   */
  let targets = new WeakMap<Socket, number>()
  const readBytes = (socket: Socket) => socket.bytesWritten - socket.writableLength
  const isStalled = (socket: Socket) => readBytes(socket) < (targets.get(socket) ?? 0)
  return (connections) => {
    const unread = [...connections].filter(({ writableLength }) => writableLength > 0)
    let bytes = unread.reduce((sum, { writableLength }) => sum + writableLength, 0)
    for (const socket of unread
      .filter(isStalled)
      .toSorted((a, b) => b.writableLength - a.writableLength)) {
      if (bytes <= maxBytes) break
      bytes -= socket.writableLength
      socket.destroy()
    }
    targets = new WeakMap(
      unread.map((socket) => [
        socket,
        readBytes(socket) + Math.min(READ_BYTES, socket.writableLength),
      ]),
    )
  }
}

/** Deferred work may take this time in one turn of the event loop. */
const TURN_MS = 1

/**
 * A fair queue: runs deferred functions for about a millisecond in each turn of the event loop,
 * between new connections and small requests.
 */
export function createTurns(): (run: () => void) => void {
  const waiting: (() => void)[] = []
  let isScheduled = false
  function runSome(): void {
    const began = performance.now()
    do waiting.shift()?.()
    while (waiting.length > 0 && performance.now() - began < TURN_MS)
    isScheduled = waiting.length > 0
    if (isScheduled) setImmediate(runSome)
  }
  return (run) => {
    waiting.push(run)
    if (!isScheduled) setImmediate(runSome)
    isScheduled = true
  }
}
