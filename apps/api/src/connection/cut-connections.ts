// Cuts connections whose callers neither send nor read, and those with too much unread.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** The bounds of all connections together, and of each. */
export interface ConnectionBounds {
  /**
   * Beyond this number, an idle connection is closed for a new one. If none is idle, the new one gets one answer, a
   * 503, and is closed.
   */
  maxConnections: number
  /** A connection that idles for less is not closed for a new one, in ms: its caller may use it right now. */
  leastIdleMs: number
  /** The size of all answers that were written and not read, in bytes. Beyond it, callers that do not read are cut. */
  maxUnreadBytes: number
  /**
   * The size of all that was received and waits to be parsed, in bytes. Beyond it, a caller that pipelines gets the
   * answer to the request in progress, and is closed.
   */
  maxUnparsedBytes: number
  /** How long a connection may idle while the caller should send or read, in ms. */
  idleMs: number
}

/** Cuts a connection that is still open after this time, in ms. */
export function cutAfter(socket: Socket, ms: number): void {
  const timer = setTimeout(() => socket.destroy(), ms).unref()
  socket.once('close', () => clearTimeout(timer))
}

/** Cuts a connection on which nothing moved for `idleMs`, unless its caller waits for us. */
export function cutIfIdle(request: IncomingMessage, response: ServerResponse, idleMs: number): void {
  // If the body waits for us to read it, its sender is not idle.
  const awaitsBody = !request.complete && request.readableLength === 0
  const isUnread = request.complete && response.writableLength > 0
  if (awaitsBody || isUnread) request.socket.destroy()
  else request.socket.setTimeout(idleMs)
}

/**
 * How often the callers that have something to read are looked at. One is stalled that reads less in that time than
 * `READ_BYTES`, and less than it could.
 */
export const SWEEP_MS = 2_000
const READ_BYTES = 64 * 1024

/**
 * Makes the function of a sweep over the connections with something unread. While the sum of unread bytes exceeds the
 * bound, it cuts the connections of stalled callers, the largest first.
 */
export function createUnreadCutter(maxBytes: number): (unread: readonly Socket[]) => void {
  /** The bytes that each caller must have read by the next sweep, counted from the beginning of its connection. */
  let targets = new WeakMap<Socket, number>()
  const readBytes = (socket: Socket) => socket.bytesWritten - socket.writableLength
  return (unread) => {
    const isStalled = (socket: Socket) => readBytes(socket) < (targets.get(socket) ?? 0)
    let bytes = unread.reduce((sum, { writableLength }) => sum + writableLength, 0)
    for (const socket of unread.filter(isStalled).toSorted((a, b) => b.writableLength - a.writableLength)) {
      if (bytes <= maxBytes) break
      bytes -= socket.writableLength
      socket.destroy()
    }
    targets = new WeakMap(
      unread.map((socket) => [socket, readBytes(socket) + Math.min(READ_BYTES, socket.writableLength)]),
    )
  }
}
