import { processEnv } from '@sluice/ops'
import { connectStore } from '@sluice/store'
import { MongoServerSelectionError } from 'mongodb'
import { buildCli } from './cli.ts'
import { doctorCommand } from './doctor/doctor-command.ts'
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

const openDb = async () => connectStore(await findServer('MONGODB_URL', folder, env))

const cli = buildCli([
  startCommand({ folder, env, connectStore, say, fail }),
  keysCommand({ openDb, print: say }),
  doctorCommand({ openDb, print: say, fail }),
])
try {
  await cli.parseAsync()
} catch (error) {
  if (error instanceof NoInstance) fail(error.message)
  else if (error instanceof MongoServerSelectionError) fail(`MongoDB can not be reached: ${error.message}`)
  else throw error
}
