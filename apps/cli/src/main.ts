// The program `sluice`: wires its commands to this process.
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { hostname, userInfo } from 'node:os'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { inspect } from 'node:util'
import { processEnv } from '@sluice/ops/settings'
import type { QueueAddress } from '@sluice/queue'
import { Command, CommanderError } from 'commander'
import type { DoctorDeps } from './doctor/doctor-command.ts'
import { messageForPeople, RedisAwayError, UserError } from './errors.ts'
import type { ApiOptions } from './find-api.ts'
import type { CreateLink } from './login/login-command.ts'
import { findMongodb, instancePaths, readRunning } from './start/instance.ts'
import { createPrinter, printable } from './terminal.ts'

// The reader of our output may end before us; that must not cut an orderly stop short.
process.stdout.on('error', () => {})
process.stderr.on('error', () => {})

const env = processEnv()
const here = process.cwd()
const isStartedHere = process.argv[2] === 'start' || existsSync(instancePaths(here).root)
/** The folder of `start`'s data: this one or, if nothing was started here, that of the program. */
const folder = isStartedHere ? here : resolve(import.meta.dirname, '../../..')
const say = createPrinter((text) => process.stdout.write(text))
const show = createPrinter((text) => process.stderr.write(text))
const lines = (print: (line: string) => void) => (text: string) => text.split('\n').forEach(print)
const fail = (message: string) => {
  lines(show)(message)
  process.exitCode = 1
}

const openDb = async () => {
  const { connectStore } = await import('@sluice/store/connect')
  return connectStore(await findMongodb(folder, env))
}

type Queues = typeof import('@sluice/queue')

/** The time for a connection to be ready: a Redis that loads its data, or a proxy that closes it, causes no error. */
const READY_MS = 5_000

/** Connects to the Redis of a queue until `work` is done. @throws {RedisAwayError} */
async function withRedis<Result>(
  address: QueueAddress,
  work: (redis: ReturnType<Queues['connectFailFast']>, queue: Queues) => Promise<Result>,
): Promise<Result> {
  const queue = await import('@sluice/queue')
  const redis = queue.connectFailFast(address, () => {})
  try {
    const late = new Error(`it was not ready within ${READY_MS / 1_000} s, as while it loads its data`)
    const timer = setTimeout(() => redis.emit('error', late), READY_MS)
    await once(redis, 'ready').finally(() => clearTimeout(timer))
    return await work(redis, queue)
  } catch (error) {
    if (error instanceof UserError) throw error
    throw new RedisAwayError(`Redis cannot be reached: ${error instanceof Error ? error.message : error}`)
  } finally {
    redis.disconnect()
  }
}

const createLink: CreateLink = (address, role) =>
  withRedis(address, (redis, { createSessions, queueKeys }) => {
    const by = `${userInfo().username}@${hostname()}`
    return createSessions(redis, queueKeys(address.queue)).createLink({ role, by })
  })

const checkRedis = (redisUrl: string) =>
  withRedis({ redisUrl, queue: env.QUEUE ?? '' }, async (redis, { redisFaults }) => {
    const { eviction } = redisFaults(await redis.info(), 0)
    if (eviction.length > 0) throw new UserError(eviction.join(' '))
  })

const withQueue: DoctorDeps['withQueue'] = async (work) => {
  const { findQueue } = await import('./login/login-command.ts')
  const address = findQueue(env, await readRunning(instancePaths(folder).running))
  return withRedis(address, (redis, { queueKeys }) => work(redis, queueKeys(address.queue)))
}

const openClient = async (options: ApiOptions) => {
  const { openAdminClient } = await import('./jobs/admin-client.ts')
  return openAdminClient({ folder, env }, options)
}

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
  createLink,
  checkRedis,
  confirm,
  say,
  print: say,
  show,
  fail,
}

/** Each command is loaded only if it is run or listed: all of them take 0.2 s. */
const commands: Readonly<Record<string, () => Promise<Command>>> = {
  start: async () => {
    const { connectStore } = await import('@sluice/store/connect')
    return (await import('./start/start-command.ts')).startCommand({ ...deps, connectStore, say: lines(say) })
  },
  import: async () => (await import('./import/import-command.ts')).importCommand(deps),
  list: async () => (await import('./sources/sources-commands.ts')).listCommand(deps),
  get: async () => (await import('./sources/sources-commands.ts')).getCommand(deps),
  keys: async () => (await import('./keys/keys-command.ts')).keysCommand(deps),
  login: async () => (await import('./login/login-command.ts')).loginCommand(deps),
  status: async () => (await import('./jobs/queue-commands.ts')).statusCommand(deps),
  find: async () => (await import('./jobs/hits-commands.ts')).findCommand(deps),
  tail: async () => (await import('./jobs/hits-commands.ts')).tailCommand(deps),
  jobs: async () => (await import('./jobs/jobs-command.ts')).jobsCommand(deps),
  pause: async () => (await import('./jobs/queue-commands.ts')).laneCommand('pause', deps),
  resume: async () => (await import('./jobs/queue-commands.ts')).laneCommand('resume', deps),
  doctor: async () => (await import('./doctor/doctor-command.ts')).doctorCommand(deps),
}

/** Makes the stack that Node prints of a fault safe for a terminal: its message may quote a server. */
function withPrintableStack(error: unknown): Error {
  return Object.assign(new Error(), { stack: inspect(error).split('\n').map(printable).join('\n') })
}

const sluice = new Command('sluice')
  .description('Takes in conversation threads over HTTP and keeps each exactly once in MongoDB.')
  .showHelpAfterError()
const named = commands[process.argv[2] ?? '']
for (const load of named === undefined ? Object.values(commands) : [named]) sluice.addCommand(await load())

try {
  await sluice.parseAsync()
} catch (error) {
  const message = messageForPeople(error)
  if (message !== undefined) fail(`error: ${message}`)
  // `sluice import` has printed a CommanderError, and set the exit code.
  else if (!(error instanceof CommanderError)) throw withPrintableStack(error)
}
