// Finds the instance that runs in a folder, and the servers that it uses.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { processFacts } from '@sluice/servers'

/** The files of an instance. */
export interface InstancePaths {
  readonly root: string
  readonly data: string
  readonly logs: string
  readonly key: string
  readonly operatorKey: string
  readonly running: string
}

/** The paths under `.sluice/` of a folder. */
export function instancePaths(folder: string): InstancePaths {
  const root = join(folder, '.sluice')
  return {
    root,
    data: join(root, 'data'),
    logs: join(root, 'logs'),
    key: join(root, 'key'),
    operatorKey: join(root, 'operator-key'),
    running: join(root, 'running.json'),
  }
}

/** The record of `start` about itself for other commands in the same folder. */
export interface RunningInstance {
  readonly pid: number
  /** Its command line: another program may have the process id by now. */
  readonly command: string
  readonly apiUrl: string
  /** Its servers, as soon as they run. */
  readonly redisUrl?: string
  readonly mongodbUrl?: string
}

/** The `start` that a file records, where its process lives. */
export async function readRunning(file: string): Promise<RunningInstance | undefined> {
  const recorded = parse(await readFile(file, 'utf8').catch(() => ''))
  if (recorded === undefined) return undefined
  const facts = await processFacts(recorded.pid)
  return facts?.command === recorded.command ? recorded : undefined
}

function parse(text: string): RunningInstance | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isRunningInstance(value) ? value : undefined
  } catch {
    // A crash cut it short, so nothing runs.
    return undefined
  }
}

function isRunningInstance(value: unknown): value is RunningInstance {
  if (typeof value !== 'object' || value === null) return false
  const { pid, command, apiUrl, redisUrl, mongodbUrl } = { ...value } as Partial<Record<string, unknown>>
  const texts = [command, apiUrl, redisUrl ?? '', mongodbUrl ?? '']
  return Number.isSafeInteger(pid) && texts.every((text) => typeof text === 'string')
}

/** The environment does not name a server, and no instance in the folder names one. */
export class NoInstance extends Error {
  override readonly name = 'NoInstance'
}

/** The environment variables that may name servers. */
export interface NamedServers {
  readonly REDIS_URL?: string | undefined
  readonly MONGODB_URL?: string | undefined
}

export interface ServerUrls {
  readonly redisUrl: string
  readonly mongodbUrl: string
}

/** The servers that a command uses: those that the environment names, else those of the `start` in this folder. Throws NoInstance. */
export async function findInstance(folder: string, env: NamedServers): Promise<ServerUrls> {
  const [redisUrl, mongodbUrl] = await Promise.all([
    findServer('REDIS_URL', folder, env),
    findServer('MONGODB_URL', folder, env),
  ])
  return { redisUrl, mongodbUrl }
}

/** The same for a command that needs only one of them. Throws NoInstance. */
export async function findServer(name: keyof NamedServers, folder: string, env: NamedServers): Promise<string> {
  const named = env[name]
  if (named) return named
  const running = await readRunning(instancePaths(folder).running)
  const url = name === 'REDIS_URL' ? running?.redisUrl : running?.mongodbUrl
  if (url !== undefined) return url
  if (running !== undefined) {
    throw new NoInstance(`Sluice is still starting in ${folder} (process ${running.pid}): try again in a moment.`)
  }
  throw new NoInstance(`No Sluice runs in ${folder}. Run \`start\` there first, or name the server with ${name}.`)
}
