/** A small seeded generator (mulberry32): the same seed gives the same threads on every machine. */
export interface Random {
  /** From 0 to below 1. */
  next(): number
  /** Log-normal with this median; `sigma` is the spread of its logarithm. */
  logNormal(median: number, sigma: number): number
}

export function createRandom(seed: number): Random {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  /** Box and Muller's transform. */
  const normal = () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next())
  return { next, logNormal: (median, sigma) => median * Math.exp(sigma * normal()) }
}
