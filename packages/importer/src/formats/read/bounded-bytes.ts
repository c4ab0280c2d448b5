// Collects the bytes of values that span chunks. Each value is kept up to a bound.

/**
 * A longer record is rejected. It may be longer than a request (10 MiB by default), because a
 * thread is sent in parts.
 */
export const LONGEST_RECORD_BYTES = 32 * 1024 * 1024

/** The bytes of a value. */
export interface Bounded {
  bytes: Buffer
  /** Whether the value is longer than its bound. `bytes` has only its beginning then. */
  isTooLong: boolean
}

/** Collects one value after another. Memory: pieces of `longest` bytes, and one more. */
export function createBoundedBytes(longest: number) {
  let pieces: Buffer[] = []
  let length = 0
  return {
    /** Adds a piece of the value. It is not copied. */
    add(piece: Buffer): void {
      if (length <= longest) pieces.push(piece)
      length += piece.length
    },
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
