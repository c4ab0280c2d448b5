import { parseArgs } from 'node:util'
import { check } from './check.ts'
import { WORLDS } from './history.ts'

// Explores more histories than the test suite does: `pnpm explore --runs 100000 [--seed N] [--no-shrink]`. Exits 1 where a law is broken.

const { values } = parseArgs({
  options: { runs: { type: 'string' }, seed: { type: 'string' }, 'no-shrink': { type: 'boolean' } },
})
const options = {
  runs: Number(values.runs ?? 10_000),
  seed: Number(values.seed ?? Date.now() % 2 ** 31),
  shrinks: values['no-shrink'] !== true,
}

for (const world of Object.keys(WORLDS)) {
  if (!isWorld(world)) continue
  const began = performance.now()
  await check(world, options)
  const seconds = ((performance.now() - began) / 1000).toFixed(1)
  console.log(`${world}: ${options.runs} histories from seed ${options.seed} hold, ${seconds} s`)
}

function isWorld(name: string): name is keyof typeof WORLDS {
  return name in WORLDS
}
