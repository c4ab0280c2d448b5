/** A writer gives up where it could not write its quotes within this time of naming itself, in milliseconds. */
export const WRITER_PATIENCE_MS = 30_000

/** A writer that named itself longer ago than this has written or given up, so `sluice doctor --repair` takes it off, in milliseconds. */
export const WRITER_SETTLED_MS = 60_000

/** A writer that named itself longer ago than this is taken off by whoever comes by, in milliseconds. */
export const WRITER_LIFETIME_MS = 60 * 60 * 1000
