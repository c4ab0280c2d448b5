// Feeds Node's parser with one request at a time, in pieces that do not keep other callers waiting.
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { ProblemError } from '../request/problem-error.ts'
import { createChunkPace, createPause } from './pace.ts'

/** The end of a head, and of a body in chunks. */
const MESSAGE_END = '\r\n\r\n'
const NOTHING: Buffer = Buffer.alloc(0)
/** The beginning of `MESSAGE_END` at the end of what was received. */
const CUT_END = /\r(\n\r?)?$/
/** After a read of this size, and after this number of pieces (which may be nothing but line ends), others come first. */
const READ_BYTES = 16 * 1024
const PIECES_AT_ONCE = 16

export type Feed = ReturnType<typeof feedParser>

/**
 * Comes between a socket and Node's parser. Nothing stops the parser within a read, not even `socket.destroy()`: it
 * would make up to 3,600 requests and responses of the read, or 10,000 chunks.
 *
 * @param unparsed what was received on all connections and is not parsed, in bytes. It is kept up to date.
 * @param later runs a function after what others sent.
 * @param refuse answers with a problem, and must call `stop`.
 */
export function feedParser(
  socket: Socket,
  unparsed: { bytes: number },
  later: (run: () => void) => void,
  refuse: (problem: ProblemError) => void,
) {
  const [parse] = socket.listeners('data')
  // Node removes its listeners that stop reading when another one receives the data.
  const [stop, start] = [...socket.listeners('pause'), ...socket.listeners('resume')]
  let rest = NOTHING
  let isOver = false
  const pause = createPause(socket, later)
  let response: ServerResponse | undefined
  let bodyLeft = 0
  let chunks: ReturnType<typeof createChunkPace> | undefined

  const responseInProgress = () => (response?.closed === false ? response : undefined)

  function feed(): void {
    for (let pieces = 0; rest.length > 0 && !isOver && socket.writable; pieces++) {
      // No request is parsed before the end of the response to the one before.
      if (responseInProgress()?.req.complete) return void socket.pause()
      const end = nextEnd()
      // Node pauses a socket whose body is not read.
      if (end === 0 || socket.isPaused()) return
      if (pieces === PIECES_AT_ONCE) return void pause.begin()
      const piece = rest.subarray(0, end)
      // An empty piece of what was read would keep the memory of all of it.
      keep(end === rest.length ? NOTHING : rest.subarray(end))
      bodyLeft = Math.max(0, bodyLeft - end)
      parse?.call(socket, piece)
      chunks?.afterPiece()
    }
  }

  function keep(bytes: Buffer): void {
    unparsed.bytes += bytes.length - rest.length
    rest = bytes
  }

  /** Where the next piece ends: with the message, if not before. */
  function nextEnd(): number {
    const isBody = response?.req.complete === false
    if (isBody && chunks === undefined) return Math.min(bodyLeft, rest.length)
    const most = (isBody && chunks?.pieceBytes()) || rest.length
    const at = rest.subarray(0, most + MESSAGE_END.length - 1).indexOf(MESSAGE_END)
    if (at !== -1) return at + MESSAGE_END.length
    const tail = rest.toString('latin1', Math.max(0, rest.length - MESSAGE_END.length + 1))
    return Math.min(most, rest.length - (CUT_END.exec(tail)?.[0].length ?? 0))
  }

  // The listeners of 'pause' and 'resume' stop and start reading. A stream would read 64 KiB ahead while it is paused.
  socket._read = () => {}
  socket.removeAllListeners('data').on('data', (bytes) => {
    const { length } = bytes
    if (!isOver && socket.writable) keep(rest.length === 0 ? bytes : Buffer.concat([rest, bytes]))
    // Until the collector runs, reads that are not kept would take more than 100 MiB.
    if (rest !== bytes) (bytes.buffer as ArrayBuffer).transfer(0)
    feed()
    if (length >= READ_BYTES && !isOver) pause.begin()
  })
  socket.once('close', () => keep(NOTHING))
  socket.on('pause', () => stop?.call(socket))
  socket.on('resume', () => {
    start?.call(socket)
    if (pause.isPausing()) socket.pause()
    else feed()
  })
  return {
    responseInProgress,
    /** Whether more was sent than the current request, and a line end. */
    hasMore: () => rest.length >= bodyLeft + MESSAGE_END.length,
    /** Goes on with a request whose head was parsed. */
    begin(opened: ServerResponse, onAnswered: () => void): void {
      response = opened
      opened.once('close', () => {
        // An idle connection does not keep its last request in memory.
        if (opened.req.complete) response = undefined
        onAnswered()
      })
      const { headers } = opened.req
      bodyLeft = Number(headers['content-length'] ?? 0)
      chunks = headers['transfer-encoding'] === undefined ? undefined : createChunkPace(opened.req, pause, refuse)
    },
    /** Parses nothing more. What arrives is read only to discard it. */
    stop(): void {
      isOver = true
      keep(NOTHING)
      socket.resume()
    },
  }
}
