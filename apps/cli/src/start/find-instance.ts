import { instancePaths } from './instance-folder.ts'
import { readRunning } from './running-file.ts'

/** The environment does not name a server, and nothing runs in the folder that could tell of it. */
export class NoInstance extends Error {
  override readonly name = 'NoInstance'
}

/** What the environment may name. */
export interface NamedServers {
  readonly REDIS_URL?: string | undefined
  readonly MONGODB_URL?: string | undefined
}

export interface ServerUrls {
  readonly redisUrl: string
  readonly mongodbUrl: string
}

/** Where a command finds both servers: what the environment names, else those of the `start` that runs in this folder. Throws NoInstance. */
export async function findInstance(folder: string, env: NamedServers): Promise<ServerUrls> {
  const [redisUrl, mongodbUrl] = await Promise.all([
    findServer('REDIS_URL', folder, env),
    findServer('MONGODB_URL', folder, env),
  ])
  return { redisUrl, mongodbUrl }
}

/** The same for a command that needs one of them alone. Throws NoInstance. */
export async function findServer(name: keyof NamedServers, folder: string, env: NamedServers): Promise<string> {
  const named = env[name]
  if (named) return named
  const running = await readRunning(instancePaths(folder).running)
  const url = name === 'REDIS_URL' ? running?.redisUrl : running?.mongodbUrl
  if (url !== undefined) return url
  if (running !== undefined) {
    throw new NoInstance(`The Sluice in ${folder} (process ${running.pid}) is still starting: try again in a moment.`)
  }
  throw new NoInstance(`No Sluice runs in ${folder}. Run \`start\` there first, or name the server by ${name}.`)
}
