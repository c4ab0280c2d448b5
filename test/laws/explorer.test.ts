import { describe, it } from 'vitest'
import { check } from './explorer/check.ts'
import { WORLDS } from './explorer/history.ts'

// Explores random interleavings of the store's commands in every world: three times 7,000 histories. `EXPLORE_SEED` runs the same ones again, `EXPLORE_RUNS` other numbers of them.

const { EXPLORE_RUNS = '7000', EXPLORE_SEED } = process.env
const TIME_LIMIT_MS = 600_000

describe('no interleaving, death, late command or repeated delivery breaks a law', () => {
  for (const world of worlds()) {
    it(`in a world of ${world}`, { timeout: TIME_LIMIT_MS }, async () => {
      const options = { runs: Number(EXPLORE_RUNS), seed: Number(EXPLORE_SEED ?? Math.floor(Math.random() * 2 ** 31)) }
      console.log(`${world}: ${options.runs} histories, EXPLORE_SEED=${options.seed}`)
      await check(world, options)
    })
  }
})

function worlds(): (keyof typeof WORLDS)[] {
  const isWorld = (name: string): name is keyof typeof WORLDS => name in WORLDS
  return Object.keys(WORLDS).filter(isWorld)
}
