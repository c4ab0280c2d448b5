// Paces connections, so that none keeps the callers of others waiting.
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { bodyUnreadable, type ProblemError } from '../request/problem-error.ts'

/**
 * Makes the function that runs others later, one in each turn of the event loop: a turn accepts one connection.
 * Pipelined requests and large reads come after what other callers send.
 */
export function createTurns(): (run: () => void) => void {
  const waiting: (() => void)[] = []
  function runNext(): void {
    const run = waiting.shift()
    if (waiting.length > 0) setImmediate(runNext)
    run?.()
  }
  return (run) => {
    if (waiting.push(run) === 1) setImmediate(runNext)
  }
}

export type Pause = ReturnType<typeof createPause>

/** Makes the pauses of a connection. @param later runs a function after what others sent. */
export function createPause(socket: Socket, later: (run: () => void) => void) {
  let isPausing = false
  function goOn(): void {
    isPausing = false
    socket.resume()
  }
  return {
    isPausing: () => isPausing,
    /** @param ms the time to pause; 0: until others had their turn. */
    begin(ms = 0): void {
      // Node has paused a socket whose body is not read, and only Node may resume it.
      if (socket.isPaused()) return
      isPausing = true
      socket.pause()
      if (ms === 0) later(goOn)
      else setTimeout(goOn, ms)
    },
  }
}

/** A chunk costs some 2 µs, however small it is. A piece of a body in chunks has some `CHUNKS_AT_ONCE`, or this size. */
const CHUNKS_AT_ONCE = 8
const LEAST_PIECE_BYTES = 512
/** The chunks of a connection in a second are bounded by pausing it. */
const CHUNKS_PER_MS = 5
/** After this number of chunks, a body with a smaller mean is refused. Pieces cut in two a few chunks of 16 bytes. */
const JUDGED_CHUNKS = 10_000
const LEAST_MEAN_BYTES = 15
const TINY_CHUNKS = 'The body has more than 10,000 chunks of fewer than 16 bytes in the mean.'

/** Counts the chunks of a body as they are parsed, pauses, and refuses a body whose chunks cost more than they bring. */
export function createChunkPace(request: IncomingMessage, pause: Pause, refuse: (problem: ProblemError) => void) {
  let chunks = 0
  let bytes = 0
  let paused = 0
  const push = request.push
  request.push = (chunk, encoding) => {
    if (chunk !== null) {
      chunks += 1
      bytes += chunk.length
    }
    return push.call(request, chunk, encoding)
  }
  return {
    /** The size of the next piece to parse, at most. */
    pieceBytes: () => Math.max(LEAST_PIECE_BYTES, (CHUNKS_AT_ONCE * bytes) / Math.max(1, chunks)),
    afterPiece(): void {
      if (chunks >= JUDGED_CHUNKS && bytes < LEAST_MEAN_BYTES * chunks)
        return void refuse(bodyUnreadable('too_many', TINY_CHUNKS))
      const ms = (chunks - paused) / CHUNKS_PER_MS
      paused = chunks
      if (ms >= 1) pause.begin(ms)
    },
  }
}
