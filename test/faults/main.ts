// Runs the fault tests: `pnpm faults [--full] [file …]`. Their full form takes about half an hour.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { parseArgs } from 'node:util'

const { values, positionals } = parseArgs({ options: { full: { type: 'boolean' } }, allowPositionals: true })
const env = { ...process.env, ...(values.full === true && { SLUICE_FULL: '1' }) }
// The fuzzer's full form belongs to the attacks.
const projects = ['--project', 'faults', ...(values.full === true ? ['--project', 'attacks'] : [])]
const vitest = spawn('vitest', [...projects, ...positionals], { env, stdio: 'inherit' })
const [code] = await once(vitest, 'close')
process.exitCode = code ?? 1
