import { processEnv } from '@sluice/ops'
import { connectStore } from '@sluice/store'
import { buildCli } from './cli.ts'
import { keysCommand } from './keys/keys-command.ts'
import { startCommand } from './start/command.ts'
import { findServer, NoInstance } from './start/find-instance.ts'

// Whoever read our output may be gone before us; that must not cut an orderly stop short.
process.stdout.on('error', () => {})
process.stderr.on('error', () => {})

const folder = process.cwd()
const env = processEnv()
const say = (line: string) => void process.stdout.write(`${line}\n`)
const fail = (message: string) => {
  process.stderr.write(`${message}\n`)
  process.exitCode = 1
}

const cli = buildCli([
  startCommand({ folder, env, say, fail }),
  keysCommand({ openDb: async () => connectStore(await findServer('MONGODB_URL', folder, env)), print: say }),
])
try {
  await cli.parseAsync()
} catch (error) {
  if (!(error instanceof NoInstance)) throw error
  fail(error.message)
}
