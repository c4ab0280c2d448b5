import { describe, it } from 'vitest'
import { scale } from '../support/scale.ts'
import { check } from './explorer/check.ts'
import { historyKinds } from './explorer/history.ts'

// Explores random interleavings of the store's commands, for every kind of histories.
// `EXPLORE_SEED` explores the same histories again, `EXPLORE_RUNS` that number of each kind.

const { EXPLORE_RUNS = scale('200', '2000'), EXPLORE_SEED } = process.env
const TIME_LIMIT_MS = 600_000

describe('no interleaving, death, late command or repeated delivery breaks a law', () => {
  for (const kind of historyKinds()) {
    it(kind, { timeout: TIME_LIMIT_MS }, async () => {
      const options = {
        runs: Number(EXPLORE_RUNS),
        seed: Number(EXPLORE_SEED ?? Math.floor(Math.random() * 2 ** 31)),
      }
      console.log(`${kind}: ${options.runs} histories, EXPLORE_SEED=${options.seed}`)
      await check(kind, options)
    })
  }
})
