import { parseArgs } from 'node:util'
import { check } from './check.ts'
import { REQUEST_KINDS } from './history.ts'

// Explores more histories than the test suite does: `pnpm explore --runs 100000 [--seed N] [--no-shrink]`. Exits 1 if a law is broken.

const { values } = parseArgs({
  options: { runs: { type: 'string' }, seed: { type: 'string' }, 'no-shrink': { type: 'boolean' } },
})
const options = {
  runs: Number(values.runs ?? 10_000),
  seed: Number(values.seed ?? Date.now() % 2 ** 31),
  shrinks: values['no-shrink'] !== true,
}

for (const kind of Object.keys(REQUEST_KINDS)) {
  if (!isKind(kind)) continue
  const began = performance.now()
  await check(kind, options)
  const seconds = ((performance.now() - began) / 1000).toFixed(1)
  console.log(`${kind}: ${options.runs} histories from seed ${options.seed} hold, ${seconds} s`)
}

function isKind(name: string): name is keyof typeof REQUEST_KINDS {
  return name in REQUEST_KINDS
}
