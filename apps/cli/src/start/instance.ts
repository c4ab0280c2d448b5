// Claims a folder for one instance, and finds the instance that runs in a folder, with the servers that it uses.
import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
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

/** The server that a command uses: the one that the environment names, else that of the `start` in this folder. Throws NoInstance. */
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

/** Another `start` runs in this folder. */
export class AlreadyRunning extends Error {
  override readonly name = 'AlreadyRunning'

  constructor({ pid, apiUrl }: RunningInstance) {
    super(
      `Sluice runs in this folder already: ${apiUrl} (process ${pid}). Stop it with Ctrl-C there, or with \`kill ${pid}\`.`,
    )
  }
}

export interface Claim {
  /** Records the servers, for other commands. */
  recordServers(urls: { redisUrl: string; mongodbUrl: string }): Promise<void>
  release(): Promise<void>
}

/** Claims the folder for this process; throws AlreadyRunning. */
export async function claimFolder({ root, running }: InstancePaths, apiUrl: string): Promise<Claim> {
  await mkdir(root, { recursive: true, mode: 0o700 })
  const facts = await processFacts(process.pid)
  const self: RunningInstance = { pid: process.pid, command: facts?.command ?? '', apiUrl }
  const draft = `${running}.${process.pid}`
  try {
    await writeRecord(draft, self)
    await claim(draft, running)
  } finally {
    await rm(draft, { force: true })
  }
  return {
    async recordServers(urls) {
      await writeRecord(draft, { ...self, ...urls })
      await rename(draft, running)
    },
    release: () => rm(running, { force: true }),
  }
}

/** `link` is atomic and fails where the file exists: of two processes that start together, one wins. */
async function claim(draft: string, running: string): Promise<void> {
  for (let left = 2; ; left--) {
    try {
      return await link(draft, running)
    } catch (error) {
      const other = await readRunning(running)
      if (other !== undefined) throw new AlreadyRunning(other)
      if (left === 0) throw error
      await rm(running, { force: true })
    }
  }
}

function writeRecord(file: string, record: RunningInstance): Promise<void> {
  return writeFile(file, JSON.stringify(record), { mode: 0o600 })
}
