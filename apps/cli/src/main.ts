// The program `sluice`: wires its commands to this process.
import { once } from 'node:events'
import { hostname, userInfo } from 'node:os'
import { createInterface } from 'node:readline/promises'
import { processEnv } from '@sluice/ops'
import { connectStore } from '@sluice/store'
import { Command, CommanderError } from 'commander'
import { MongoServerSelectionError } from 'mongodb'
import { doctorCommand } from './doctor/doctor-command.ts'
import type { ApiOptions } from './find-api.ts'
import { importCommand } from './import/import-command.ts'
import { openAdminClient } from './jobs/admin-client.ts'
import { findCommand } from './jobs/find-command.ts'
import { jobsCommand } from './jobs/jobs-command.ts'
import { laneCommand } from './jobs/lane-command.ts'
import { statusCommand } from './jobs/status-command.ts'
import { tailCommand } from './jobs/tail-command.ts'
import { keysCommand } from './keys/keys-command.ts'
import { type CreateLink, loginCommand, RedisAwayError } from './login/login-command.ts'
import { getCommand, listCommand } from './sources/sources-commands.ts'
import { findMongodb, NoInstance } from './start/instance.ts'
import { startCommand } from './start/start-command.ts'

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

const openDb = async () => connectStore(await findMongodb(folder, env))

const createLink: CreateLink = async ({ redisUrl, queue }, role) => {
  // Other commands start sooner without it.
  const { connectFailFast, createSessions, queueKeys } = await import('@sluice/queue')
  const redis = connectFailFast(redisUrl, () => {})
  try {
    await once(redis, 'ready')
    const by = `${userInfo().username}@${hostname()}`
    return await createSessions(redis, queueKeys(queue)).createLink({ role, by })
  } catch (error) {
    throw new RedisAwayError(`Redis cannot be reached: ${error instanceof Error ? error.message : error}`)
  } finally {
    redis.disconnect()
  }
}

const openClient = (options: ApiOptions) => openAdminClient({ folder, env }, options)

const confirm = async (question: string) => {
  if (!process.stdin.isTTY) return false
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  const answer = await terminal.question(`${question} [y/N] `)
  terminal.close()
  return answer.trim().toLowerCase() === 'y'
}

const sluice = new Command('sluice')
  .description('Takes in conversation threads over HTTP and keeps each exactly once in MongoDB.')
  .showHelpAfterError()
  .addCommand(startCommand({ folder, env, connectStore, createLink, say, fail }))
  .addCommand(importCommand({ folder, env, say, process }))
  .addCommand(listCommand({ folder, env, print: say }))
  .addCommand(getCommand({ folder, env, print: say }))
  .addCommand(keysCommand({ openDb, print: say }))
  .addCommand(loginCommand({ folder, env, createLink, print: say }))
  .addCommand(statusCommand({ openClient, print: say }))
  .addCommand(findCommand({ openClient, print: say }))
  .addCommand(tailCommand({ openClient, print: say }))
  .addCommand(jobsCommand({ openClient, print: say, confirm }))
  .addCommand(laneCommand('pause', { openClient, print: say }))
  .addCommand(laneCommand('resume', { openClient, print: say }))
  .addCommand(doctorCommand({ openDb, print: say, show: (line) => void process.stderr.write(`${line}\n`), fail }))

try {
  await sluice.parseAsync()
} catch (error) {
  if (error instanceof NoInstance) fail(error.message)
  else if (error instanceof MongoServerSelectionError) fail(`MongoDB cannot be reached: ${error.message}`)
  // The command has printed it, and set the exit code.
  else if (!(error instanceof CommanderError)) throw error
}
