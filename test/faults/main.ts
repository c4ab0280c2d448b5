// Runs the fault tests: `pnpm faults [--full] [file …]`. Their full form takes about half an hour.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { parseArgs } from 'node:util'

const { values, positionals } = parseArgs({ options: { full: { type: 'boolean' } }, allowPositionals: true })
const env = { ...process.env, ...(values.full === true && { SLUICE_FULL: '1' }) }
const vitest = spawn('vitest', ['--project', 'faults', ...positionals], { env, stdio: 'inherit' })
const [code] = await once(vitest, 'close')
process.exitCode = code ?? 1
