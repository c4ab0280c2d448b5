// Fuzzes the API with a chosen seed and number of requests: `pnpm fuzz [--requests 10000] [--seed
// N]`. Exits 1 where an answer is not documented.
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: { requests: { type: 'string' }, seed: { type: 'string' } },
})
const chosen = {
  FUZZ_REQUESTS: values.requests ?? '10000',
  ...(values.seed !== undefined && { FUZZ_SEED: values.seed }),
}
const vitest = ['run', 'test/attacks/fuzzer.test.ts']
const { status } = spawnSync('vitest', vitest, {
  stdio: 'inherit',
  env: { ...process.env, ...chosen },
})
process.exitCode = status ?? 1
