// The program `sluice`: wires its commands to this process.
import { once } from 'node:events'
import { hostname, userInfo } from 'node:os'
import { createInterface } from 'node:readline/promises'
import { processEnv } from '@sluice/ops/settings'
import { Command, CommanderError } from 'commander'
import type { ApiOptions } from './find-api.ts'
import type { CreateLink } from './login/login-command.ts'
import { findMongodb, NoInstance } from './start/instance.ts'

// The reader of our output may end before us; that must not cut an orderly stop short.
process.stdout.on('error', () => {})
process.stderr.on('error', () => {})

const folder = process.cwd()
const env = processEnv()
const say = (line: string) => void process.stdout.write(`${line}\n`)
const fail = (message: string) => {
  process.stderr.write(`${message}\n`)
  process.exitCode = 1
}

const openDb = async () => {
  const { connectStore } = await import('@sluice/store/connect')
  return connectStore(await findMongodb(folder, env))
}

const createLink: CreateLink = async ({ redisUrl, queue }, role) => {
  const { connectFailFast, createSessions, queueKeys } = await import('@sluice/queue')
  const redis = connectFailFast(redisUrl, () => {})
  try {
    await once(redis, 'ready')
    const by = `${userInfo().username}@${hostname()}`
    return await createSessions(redis, queueKeys(queue)).createLink({ role, by })
  } catch (error) {
    const { RedisAwayError } = await import('./login/login-command.ts')
    throw new RedisAwayError(`Redis cannot be reached: ${error instanceof Error ? error.message : error}`)
  } finally {
    redis.disconnect()
  }
}

const openClient = async (options: ApiOptions) => {
  const { openAdminClient } = await import('./jobs/admin-client.ts')
  return openAdminClient({ folder, env }, options)
}

const confirm = async (question: string) => {
  if (!process.stdin.isTTY) return false
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  const answer = await terminal.question(`${question} [y/N] `)
  terminal.close()
  return answer.trim().toLowerCase() === 'y'
}

/** Each command is loaded only if it is run or listed: all of them take 0.2 s. */
const commands: Readonly<Record<string, () => Promise<Command>>> = {
  async start() {
    const { startCommand } = await import('./start/start-command.ts')
    const { connectStore } = await import('@sluice/store/connect')
    return startCommand({ folder, env, connectStore, createLink, say, fail })
  },
  async import() {
    const { importCommand } = await import('./import/import-command.ts')
    return importCommand({ folder, env, say, process })
  },
  async list() {
    const { listCommand } = await import('./sources/sources-commands.ts')
    return listCommand({ folder, env, print: say })
  },
  async get() {
    const { getCommand } = await import('./sources/sources-commands.ts')
    return getCommand({ folder, env, print: say })
  },
  async keys() {
    const { keysCommand } = await import('./keys/keys-command.ts')
    return keysCommand({ openDb, print: say })
  },
  async login() {
    const { loginCommand } = await import('./login/login-command.ts')
    return loginCommand({ folder, env, createLink, print: say })
  },
  async status() {
    const { statusCommand } = await import('./jobs/status-command.ts')
    return statusCommand({ openClient, print: say })
  },
  async find() {
    const { findCommand } = await import('./jobs/find-command.ts')
    return findCommand({ openClient, print: say })
  },
  async tail() {
    const { tailCommand } = await import('./jobs/tail-command.ts')
    return tailCommand({ openClient, print: say })
  },
  async jobs() {
    const { jobsCommand } = await import('./jobs/jobs-command.ts')
    return jobsCommand({ openClient, print: say, confirm })
  },
  async pause() {
    const { laneCommand } = await import('./jobs/lane-command.ts')
    return laneCommand('pause', { openClient, print: say })
  },
  async resume() {
    const { laneCommand } = await import('./jobs/lane-command.ts')
    return laneCommand('resume', { openClient, print: say })
  },
  async doctor() {
    const { doctorCommand } = await import('./doctor/doctor-command.ts')
    const show = (line: string) => void process.stderr.write(`${line}\n`)
    return doctorCommand({ openDb, print: say, show, fail })
  },
}

const sluice = new Command('sluice')
  .description('Takes in conversation threads over HTTP and keeps each exactly once in MongoDB.')
  .showHelpAfterError()
const named = commands[process.argv[2] ?? '']
for (const load of named === undefined ? Object.values(commands) : [named]) sluice.addCommand(await load())

try {
  await sluice.parseAsync()
} catch (error) {
  if (error instanceof NoInstance) fail(error.message)
  // By its name, because few commands load the driver.
  else if (error instanceof Error && error.name === 'MongoServerSelectionError')
    fail(`MongoDB cannot be reached: ${error.message}`)
  // The command has printed it, and set the exit code.
  else if (!(error instanceof CommanderError)) throw error
}
