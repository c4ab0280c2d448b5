import { instancePaths } from './instance-folder.ts'
import { readRunning } from './running-file.ts'

/** The environment names no servers, and nothing runs in the folder that could tell of some. */
export class NoInstance extends Error {
  override readonly name = 'NoInstance'
}

export interface ServerUrls {
  readonly redisUrl: string
  readonly mongodbUrl: string
}

/** Where a command finds the servers: what the environment names, else those of the `start` that runs in this folder. Throws NoInstance. */
export async function findInstance(
  folder: string,
  env: { readonly REDIS_URL?: string | undefined; readonly MONGODB_URL?: string | undefined },
): Promise<ServerUrls> {
  const { REDIS_URL, MONGODB_URL } = env
  if (REDIS_URL && MONGODB_URL) return { redisUrl: REDIS_URL, mongodbUrl: MONGODB_URL }
  const running = await readRunning(instancePaths(folder).running)
  const redisUrl = REDIS_URL || running?.redisUrl
  const mongodbUrl = MONGODB_URL || running?.mongodbUrl
  if (redisUrl && mongodbUrl) return { redisUrl, mongodbUrl }
  if (running !== undefined)
    throw new NoInstance(`The Sluice in ${folder} (process ${running.pid}) is still starting: try again in a moment.`)
  throw new NoInstance(
    `No Sluice runs in ${folder}. Run \`start\` there first, or name the servers by REDIS_URL and MONGODB_URL.`,
  )
}
