// The program `sluice`: wires its commands to this process.
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { processEnv } from '@sluice/process/settings'
import {
  type ApiOptions,
  createPrinter,
  fail,
  findMongodb,
  instancePaths,
  printable,
  runProgram,
  withRedis,
  withRunning,
} from '@sluice/terminal'
import { Command } from 'commander'
import { commandsOf } from './commands.ts'
import type { DoctorDeps } from './doctor/doctor-command.ts'
import type { CreateLink } from './login/login-command.ts'
import { createPrintLines } from './screen.ts'

const env = processEnv()
const here = process.cwd()
/**
 * The folder with the data of `start`: this folder or, if nothing was started here, the program's
 * folder.
 */
const folder = existsSync(instancePaths(here).root)
  ? here
  : resolve(import.meta.dirname, '../../..')
const say = createPrinter((text) => process.stdout.write(text))
const show = createPrinter((text) => process.stderr.write(text))
let explain = (error: unknown) => error
const openDb = async () => {
  const { connectStore, reasonBehind } = await import('@sluice/store/connect')
  const { processSettings, readSettings } = await import('@sluice/process')
  const { mongodbUrl } = processSettings
  const found = { MONGODB_URL: await findMongodb(folder, env) }
  const store = connectStore(readSettings({ mongodbUrl }, found).mongodbUrl)
  explain = (error) => reasonBehind(error, store.db.client)
  return store
}

const createLink: CreateLink = async (address, role) => {
  const { createUserLink } = await import('@sluice/credentials/sessions')
  return withRedis(address, (redis) => createUserLink(redis, address.queue, role))
}

const withQueue: DoctorDeps['withQueue'] = async (work) => {
  const [{ queueAddressOf }, { queueKeys }] = await Promise.all([
    import('./login/login-command.ts'),
    import('@sluice/queue'),
  ])
  const address = queueAddressOf(await withRunning(folder, env))
  return withRedis(address, (redis) => work(redis, queueKeys(address.queue)))
}

const openClient = async (options: ApiOptions) =>
  (await import('./jobs/admin-client.ts')).openAdminClient({ folder, env }, options)
const readDirectly = async () =>
  (await import('./jobs/read-status.ts')).readStatus({ openDb, withQueue })

const confirm = async (question: string) => {
  if (!process.stdin.isTTY) return false
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  const answer = await terminal.question(printable(`${question} [y/N] `))
  terminal.close()
  return answer.trim().toLowerCase() === 'y'
}

const deps = {
  folder,
  env,
  process,
  openDb,
  withQueue,
  openClient,
  readDirectly,
  printLines: createPrintLines(process.stdout),
  createLink,
  confirm,
  say,
  print: say,
  show,
  fail,
}

const commands = commandsOf(deps)
const sluice = new Command('sluice')
  .description('Takes in conversation threads over HTTP and keeps each exactly once in MongoDB.')
  .showHelpAfterError()
const named = commands[process.argv[2] ?? '']
for (const load of named === undefined ? Object.values(commands) : [named])
  sluice.addCommand(await load())

await runProgram(sluice, (error) => explain(error))
