// Gathers chunks in one buffer. A chunk kept by itself costs some 400 bytes more than it weighs, however small it is.

/** Bytes that arrive in chunks. */
export interface GrowingBuffer {
  readonly length: number
  add(chunk: Buffer): void
  /** Returns all bytes and starts anew. */
  take(): Buffer
}

const EMPTY: Buffer = Buffer.alloc(0)

/** The least that is allocated once there is a second chunk, in bytes. */
const LEAST_BYTES = 16 * 1024

/**
 * Creates an empty buffer. A single chunk is kept as it is, without a copy.
 *
 * @param expected how many bytes will probably come, or 0.
 * @param most how many bytes are ever added.
 * @param ensure is told each new capacity before it is allocated, and may throw to refuse it.
 */
export function createGrowingBuffer(
  { expected, most }: { expected: number; most: number },
  ensure: (capacity: number) => void,
): GrowingBuffer {
  let buffer: Buffer = EMPTY
  let length = 0

  function makeRoom(needed: number): void {
    if (needed <= buffer.length) return
    const capacity = Math.max(needed, Math.min(most, Math.max(expected, 2 * buffer.length, LEAST_BYTES)))
    ensure(capacity)
    // Not from Node's pool, so that the memory can be handed to another thread.
    const larger = Buffer.allocUnsafeSlow(capacity)
    buffer.copy(larger, 0, 0, length)
    buffer = larger
  }

  return {
    get length() {
      return length
    },
    add(chunk) {
      if (length === 0) buffer = chunk
      else {
        makeRoom(length + chunk.length)
        chunk.copy(buffer, length)
      }
      length += chunk.length
    },
    take() {
      const bytes = length === buffer.length ? buffer : buffer.subarray(0, length)
      buffer = EMPTY
      length = 0
      return bytes
    },
  }
}
