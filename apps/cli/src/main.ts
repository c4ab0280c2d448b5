import { processEnv } from '@sluice/ops'
import { buildCli } from './cli.ts'
import { startCommand } from './start/command.ts'

// Whoever read our output may be gone before us; that must not cut an orderly stop short.
process.stdout.on('error', () => {})
process.stderr.on('error', () => {})

const context = {
  folder: process.cwd(),
  env: processEnv(),
  say: (line: string) => void process.stdout.write(`${line}\n`),
  fail: (message: string) => {
    process.stderr.write(`${message}\n`)
    process.exitCode = 1
  },
}

await buildCli([startCommand(context)]).parseAsync()
