// Runs the fault tests: `pnpm faults [--full] [file …]`. The full form takes about three quarters of an hour.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { parseArgs } from 'node:util'

const { values, positionals } = parseArgs({ options: { full: { type: 'boolean' } }, allowPositionals: true })
const env = { ...process.env, ...(values.full === true && { SLUICE_FULL: '1' }) }
// Other kinds have full forms too: the fuzzer among the attacks, the random histories among the laws, and the comparison with another checkout. They come
// after the faults, which measure times and must not share the machine with them.
const turns = values.full === true ? [['faults'], ['attacks', 'laws', 'bench']] : [['faults']]

for (const kinds of turns) {
  const projects = kinds.flatMap((kind) => ['--project', kind])
  const vitest = spawn('vitest', ['--passWithNoTests', ...projects, ...positionals], { env, stdio: 'inherit' })
  const [code] = await once(vitest, 'close')
  if (code !== 0) process.exitCode = 1
}
