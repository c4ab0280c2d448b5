// Random choices from a seed, so that a test that failed can be run again with the same ones.

/** A seeded generator (mulberry32). */
export interface Random {
  /** From 0 to below 1. */
  next(): number
  /** From `low` to below `high`. */
  between(low: number, high: number): number
  /** One of the choices. */
  pick<T>(choices: readonly [T, ...T[]]): T
}

/** @param seed a whole number from 0 to 2³² − 1. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0
  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    next,
    between: (low, high) => low + next() * (high - low),
    pick: (choices) => choices[Math.floor(next() * choices.length)] ?? choices[0],
  }
}
