// Feeds Node's parser with one request at a time, in small pieces, so that other callers need not
// wait long.
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Ends a head, and a body in chunks. */
const MESSAGE_END = '\r\n\r\n'
const NOTHING: Buffer = Buffer.alloc(0)
/**
 * A `MESSAGE_END` that is incomplete because the received bytes end. The rest may follow in the
 * next read.
 */
const CUT_END = /\r(\n\r?)?$/
/**
 * A piece of a body in chunks, which is parsed in one turn, has at most this size, because each
 * chunk costs about 2 µs, however small it is.
 */
const CHUNKED_PIECE_BYTES = 1024
/**
 * After we have ended a connection, at most this number of bytes is discarded before the connection
 * is cut.
 */
const DISCARDED_BYTES = 64 * 1024 * 1024
/**
 * After this time, other connections get a turn. Without this, a read of only line ends, or of tiny
 * chunks, would take long, because it has very many pieces.
 */
const PIECES_MS = 1

export type Feed = ReturnType<typeof feedParser>

/**
 * Stands between a socket and Node's parser. Nothing stops the parser within a read, not even
 * `socket.destroy()`, and from one read it would make up to 3,600 requests and responses, or 10,000
 * chunks.
 *
 * @param later runs a function after other connections have had a turn.
 * @param onPending is called when the number of bytes changes that do not belong to a parsed
 * request or body yet: an unfinished head, trailers, or requests that wait for the previous answer.
 */
export function feedParser(
  socket: Socket,
  later: (run: () => void) => void,
  onPending: (bytes: number) => void,
) {
  const [parse] = socket.listeners('data')
  // These listeners of Node stop and start reading. Keep them, because Node removes them when
  // another listener gets the data.
  const [stop, start] = [...socket.listeners('pause'), ...socket.listeners('resume')]
  let rest = NOTHING
  let isOver = false
  let stoppedAt = 0
  let isDeferred = false
  let response: ServerResponse | undefined
  let bodyLeft = 0
  let isChunked = false
  /** The number of bytes that the caller had sent at the end of its last message. */
  let endedAt = 0
  /**
   * The bytes of a body in chunks since its last byte of content, which are trailers or a chunk's
   * extension.
   */
  let broughtNothing = 0
  let pending = 0

  const hasBody = () => isChunked || response?.req.headers['content-length'] !== undefined
  const responseInProgress = () => (response?.closed === false ? response : undefined)

  function feed(isTurn = false): void {
    const began = performance.now()
    while (rest.length > 0 && !isOver && socket.writable) {
      // No request is parsed before the previous response has ended.
      if (responseInProgress()?.req.complete) return void socket.pause()
      const isBody = response?.req.complete === false
      const end = isBody && !isChunked ? Math.min(bodyLeft, rest.length) : nextEnd(isBody)
      // Node pauses a socket whose body is not read.
      if (end === 0 || socket.isPaused()) return
      if (isBody && isChunked && !isTurn) return void defer()
      const piece = rest.subarray(0, end)
      // An empty subarray would keep the memory of the whole read.
      rest = end === rest.length ? NOTHING : rest.subarray(end)
      bodyLeft = Math.max(0, bodyLeft - end)
      const unread = response?.req.readableLength
      parse?.call(socket, piece)
      const hasBrought =
        response?.req.readableFlowing === true || response?.req.readableLength !== unread
      broughtNothing = isBody && isChunked && !hasBrought ? broughtNothing + end : 0
      if (rest.length > 0 && performance.now() - began > PIECES_MS) return void defer()
    }
  }

  /**
   * Returns where the next piece of a head, or of a body in chunks, ends. It never goes past the
   * end of the message.
   */
  function nextEnd(isBody: boolean): number {
    const most = isBody ? Math.min(CHUNKED_PIECE_BYTES, rest.length) : rest.length
    const at = rest.subarray(0, most + MESSAGE_END.length - 1).indexOf(MESSAGE_END)
    if (at !== -1) return at + MESSAGE_END.length
    const tail = rest.toString('latin1', Math.max(0, rest.length - MESSAGE_END.length + 1))
    return Math.min(most, rest.length - (CUT_END.exec(tail)?.[0].length ?? 0))
  }

  /** Pauses the socket, and continues after other connections have had a turn. */
  function defer(): void {
    isDeferred = true
    socket.pause()
    later(() => {
      isDeferred = false
      socket.resume()
      feed(true)
      notePending()
    })
  }

  /** Ends the request, so that an idle connection does not keep it in memory. */
  function endRequest(): void {
    response = undefined
    endedAt = socket.bytesRead - rest.length
  }

  function notePending(): void {
    if (response?.closed && response.req.complete) endRequest()
    const before = pending
    if (isOver) pending = 0
    else if (response === undefined) pending = socket.bytesRead - endedAt
    else pending = response.req.complete ? rest.length : broughtNothing
    if (pending !== before) onPending(pending)
  }

  // A paused stream would read 64 KiB ahead. Here, only the listeners of 'pause' and 'resume' stop
  // and start reading.
  socket._read = () => {}
  socket.removeAllListeners('data').on('data', (bytes) => {
    if (isOver && socket.bytesRead - stoppedAt > DISCARDED_BYTES) socket.destroy()
    if (!isOver && socket.writable) rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes])
    // Frees the memory of the read now: until the garbage collector ran, such reads would take more
    // than 100 MiB.
    if (rest !== bytes) (bytes.buffer as ArrayBuffer).transfer(0)
    feed()
    notePending()
    // If the connection was cut, frees the read's memory as well. Not if the request has a body,
    // whose chunks may use that memory.
    if (socket.destroyed && !hasBody() && bytes.buffer.byteLength > 0)
      (bytes.buffer as ArrayBuffer).transfer(0)
  })
  socket.once('close', () => (rest = NOTHING))
  socket.on('pause', () => stop?.call(socket))
  socket.on('resume', () => {
    if (isDeferred) socket.pause()
    if (socket.isPaused()) return void stop?.call(socket)
    start?.call(socket)
    feed()
    notePending()
  })
  return {
    responseInProgress,
    /**
     * Registers the request whose head was parsed. When its response has closed, calls
     * `onAnswered`, unless the caller has already sent more.
     */
    begin(opened: ServerResponse, onAnswered: () => void): void {
      response = opened
      opened.once('close', () => {
        if (opened.req.complete) endRequest()
        // The caller has sent more than this request and a line end.
        if (rest.length >= bodyLeft + MESSAGE_END.length) return void defer()
        socket.resume()
        onAnswered()
      })
      const { headers } = opened.req
      bodyLeft = Number(headers['content-length'] ?? 0)
      isChunked = headers['transfer-encoding'] !== undefined
    },
    /** Stops parsing. Bytes that arrive later are discarded, up to `DISCARDED_BYTES`. */
    stop(): void {
      isOver = true
      stoppedAt = socket.bytesRead
      rest = NOTHING
      notePending()
      socket.resume()
    },
  }
}
