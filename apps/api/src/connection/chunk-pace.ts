// Bounds what the chunks of a body cost: some 2 µs each, however small they are.
import type { IncomingMessage } from 'node:http'

/** A piece of a body in chunks has some `CHUNKS_AT_ONCE`, or this size. */
const CHUNKS_AT_ONCE = 8
const LEAST_PIECE_BYTES = 512
/** The chunks of a connection in a second are bounded by pausing it. */
const CHUNKS_PER_MS = 5
/** After this number of chunks, a body with a smaller mean is refused. Pieces cut in two a few chunks of 16 bytes. */
const JUDGED_CHUNKS = 10_000
const LEAST_MEAN_BYTES = 15

/** Counts the chunks of a body as Node parses them. */
export function createChunkPace(request: IncomingMessage) {
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
    areTiny: () => chunks >= JUDGED_CHUNKS && bytes < LEAST_MEAN_BYTES * chunks,
    /** How long to pause after a piece, in ms. */
    pauseMs(): number {
      const ms = (chunks - paused) / CHUNKS_PER_MS
      paused = chunks
      return ms
    },
  }
}
