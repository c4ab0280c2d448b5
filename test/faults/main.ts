// Runs the fault tests: `pnpm faults [--full] [file …]`. Their full form takes about half an hour.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { parseArgs } from 'node:util'

const { values, positionals } = parseArgs({ options: { full: { type: 'boolean' } }, allowPositionals: true })
const env = { ...process.env, ...(values.full === true && { SLUICE_FULL: '1' }) }
// Other kinds have full forms too: the fuzzer among the attacks, the random histories among the laws, and the comparison with another checkout.
const kinds = values.full === true ? ['faults', 'attacks', 'laws', 'bench'] : ['faults']
const projects = kinds.flatMap((kind) => ['--project', kind])
const vitest = spawn('vitest', [...projects, ...positionals], { env, stdio: 'inherit' })
const [code] = await once(vitest, 'close')
process.exitCode = code ?? 1
