import { describe, it } from 'vitest'
import { check } from './explorer/check.ts'
import { REQUEST_KINDS } from './explorer/history.ts'

// Explores random interleavings of the store's commands, for every kind of requests: three times 6,670 histories. `EXPLORE_SEED` runs the same ones again, `EXPLORE_RUNS` other numbers of them.

const { EXPLORE_RUNS = '6670', EXPLORE_SEED } = process.env
const TIME_LIMIT_MS = 600_000

describe('no interleaving, death, late command or repeated delivery breaks a law', () => {
  for (const kind of kinds()) {
    it(`requests: ${kind}`, { timeout: TIME_LIMIT_MS }, async () => {
      const options = { runs: Number(EXPLORE_RUNS), seed: Number(EXPLORE_SEED ?? Math.floor(Math.random() * 2 ** 31)) }
      console.log(`${kind}: ${options.runs} histories, EXPLORE_SEED=${options.seed}`)
      await check(kind, options)
    })
  }
})

function kinds(): (keyof typeof REQUEST_KINDS)[] {
  const isKind = (name: string): name is keyof typeof REQUEST_KINDS => name in REQUEST_KINDS
  return Object.keys(REQUEST_KINDS).filter(isKind)
}
