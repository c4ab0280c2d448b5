import { parseArgs } from 'node:util'
import { check } from './check.ts'
import { historyKinds } from './history.ts'

// Explores more histories than the test suite does: `pnpm explore --runs 100000 [--seed N]
// [--no-shrink]`. Exits 1 if a law is broken.

const { values } = parseArgs({
  options: { runs: { type: 'string' }, seed: { type: 'string' }, 'no-shrink': { type: 'boolean' } },
})
const runs = Number(values.runs ?? 10_000)
const firstSeed = Number(values.seed ?? Date.now() % 2 ** 31)
const shrinks = values['no-shrink'] !== true

/**
 * The kinds take turns, because most defects show in one kind only. Each turn has a seed of its
 * own.
 */
const TURN = 500

const kinds = historyKinds()
const began = performance.now()
for (let done = 0; done < runs; done += TURN) {
  const seed = firstSeed + done / TURN
  for (const kind of kinds) await check(kind, { runs: Math.min(TURN, runs - done), seed, shrinks })
}
const seconds = ((performance.now() - began) / 1000).toFixed(1)
console.log(
  `${runs} histories of each kind (${kinds.join(', ')}) from seed ${firstSeed} hold, ${seconds} s`,
)
