// Chooses between the short form of a test, `pnpm test`, and its full form, `pnpm test:full`.

/** Whether tests run in their full form. */
export const isFull = process.env.SLUICE_FULL === '1'

/** The size of a test: `short` by default, `full` in the full form. */
export function scale<T>(short: T, full: T): T {
  return isFull ? full : short
}
