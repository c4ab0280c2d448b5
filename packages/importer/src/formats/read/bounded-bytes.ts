// Collects the bytes of values that span chunks, each up to a bound.

/** A request has at most 10 MiB by default, and a longer thread is sent in parts. */
export const LONGEST_RECORD_BYTES = 32 * 1024 * 1024

/** The bytes of a value. */
export interface Bounded {
  bytes: Buffer
  /** The value is longer than its bound: `bytes` is only its beginning. */
  isTooLong: boolean
}

/**
 * Collects one value after another. Memory: the pieces of a value of at most `longest` bytes, and the one after them.
 *
 * @param longest in bytes.
 */
export function createBoundedBytes(longest: number) {
  let pieces: Buffer[] = []
  let length = 0
  return {
    /** Adds a piece of the value. It is not copied. */
    add(piece: Buffer): void {
      if (length <= longest) pieces.push(piece)
      length += piece.length
    },
    /** Ends the value, and returns it. */
    take(): Bounded {
      const [only = Buffer.alloc(0)] = pieces
      const bytes = pieces.length > 1 ? Buffer.concat(pieces) : only
      const isTooLong = length > longest
      pieces = []
      length = 0
      return { bytes, isTooLong }
    },
  }
}
