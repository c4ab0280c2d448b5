// Collects the bytes of values that span several chunks. Each value is kept up to a bound.

/**
 * A longer record is rejected. The bound is larger than a request's (10 MiB by default), because a
 * thread can be sent in several parts.
 */
export const LONGEST_RECORD_BYTES = 32 * 1024 * 1024

/** The bytes of a value. */
export interface Bounded {
  bytes: Buffer
  /** Whether the value exceeds its bound. If so, `bytes` has only its beginning. */
  isTooLong: boolean
}

/** Collects one value after the other. Keeps at most `longest` bytes and one further piece. */
export function createBoundedBytes(longest: number) {
  let pieces: Buffer[] = []
  let length = 0
  return {
    /** Adds a piece of the value, without copying it. */
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
