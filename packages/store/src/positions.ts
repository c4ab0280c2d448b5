// Defines the position of a quote: its place in the order in which a thread's messages were given.

/** A stamp, in µs since 1970, has 16 digits until the year 2286. The contract allows at most a million quotes in a request. */
const STAMP_DIGITS = 16
const INDEX_DIGITS = 6

/** The place of one quote in one request. */
export interface QuotePlace {
  /** The stamp of the request. */
  stamp: number
  /** The quote's index in the request. */
  index: number
}

/** Returns the position that a request gives to its quote. Positions sort as text: by the order of acceptance, then by the order in the request. */
export function positionAt({ stamp, index }: QuotePlace): string {
  return `${String(stamp).padStart(STAMP_DIGITS, '0')}.${String(index).padStart(INDEX_DIGITS, '0')}`
}

/**
 * Returns the position of a stored quote after a request gave it again: the smallest position of all requests counts, in whatever order they are processed. A quote that was
 * stored without a position stays so, because a repost says nothing of its place among the others.
 */
export function earliestPosition(stored: string | undefined, place: QuotePlace): string | undefined {
  if (stored === undefined) return undefined
  const given = positionAt(place)
  return given < stored ? given : stored
}
