// Claims a folder for one instance of Sluice. Finds the instance that runs in a folder, and the
// servers that it uses.
import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { processFacts } from './process-facts.ts'
import { UserError } from './run-program.ts'

export type InstancePaths = ReturnType<typeof instancePaths>

/** The paths of an instance, which are in `.sluice/` of a folder. */
export function instancePaths(folder: string) {
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

/** What `start` records about itself, for other commands in the same folder. */
export interface RunningInstance {
  readonly pid: number
  /** The process's command line. (Another program may have got the process id since.) */
  readonly command: string
  readonly apiUrl: string
  /** Present as soon as the servers run. */
  readonly mongodbUrl?: string
  readonly redisUrl?: string
  readonly dashboardUrl?: string
}

/** Returns the `start` that a file records, if its process is alive. */
export async function readRunning(file: string): Promise<RunningInstance | undefined> {
  // If a crash cut the record short, it is not JSON. Then nothing runs.
  const recorded: RunningInstance | undefined = await readFile(file, 'utf8')
    .then(JSON.parse)
    .catch(() => undefined)
  if (recorded?.pid === undefined) return undefined
  const facts = await processFacts(recorded.pid)
  return facts?.command === recorded.command ? recorded : undefined
}

type ServerUrls = { readonly [name in 'REDIS_URL' | 'DASHBOARD_URL']?: string | undefined }

/** Adds the servers of the `start` that runs in this folder, unless the environment names others. */
export async function withRunning<Env extends ServerUrls>(folder: string, env: Env) {
  const { redisUrl, dashboardUrl } = (await readRunning(instancePaths(folder).running)) ?? {}
  return {
    ...env,
    REDIS_URL: env.REDIS_URL || redisUrl,
    DASHBOARD_URL: env.DASHBOARD_URL || dashboardUrl,
  }
}

/**
 * Finds the MongoDB that the environment names, or the one that `start` runs in this folder.
 * @throws {UserError}
 */
export async function findMongodb(
  folder: string,
  env: { MONGODB_URL?: string | undefined },
): Promise<string> {
  if (env.MONGODB_URL) return env.MONGODB_URL
  const running = await readRunning(instancePaths(folder).running)
  if (running?.mongodbUrl !== undefined) return running.mongodbUrl
  if (running !== undefined) {
    throw new UserError(
      `Sluice is still starting in ${folder} (process ${running.pid}): try again in a moment.`,
    )
  }
  throw noSluiceIn(folder, 'its MongoDB with MONGODB_URL')
}

/** @param other what a person may name instead, and how. */
export function noSluiceIn(folder: string, other: string): UserError {
  return new UserError(
    `No Sluice runs in ${folder}. Run \`npx -y pnpm@12 start\` there, or name ${other}.`,
  )
}

/**
 * Claims the folder for this process.
 * @throws {UserError} if another `start` runs in it.
 */
export async function claimFolder({ root, running }: InstancePaths, apiUrl: string) {
  // Not `recursive`, because Node would then report a read-only file system as a folder that does
  // not exist.
  await mkdir(root, { mode: 0o700 }).catch((error) => {
    if (error.code !== 'EEXIST') throw error
  })
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
    async recordServers(
      servers: Required<Pick<RunningInstance, 'mongodbUrl' | 'redisUrl' | 'dashboardUrl'>>,
    ) {
      await writeRecord(draft, { ...self, ...servers })
      await rename(draft, running)
    },
    release: () => rm(running, { force: true }),
  }
}

/**
 * Records the claim. `link` is atomic and fails if the file exists, so if two processes start at
 * the same time, only one succeeds.
 */
async function claim(draft: string, running: string): Promise<void> {
  for (let left = 2; ; left--) {
    try {
      return await link(draft, running)
    } catch (error) {
      const other = await readRunning(running)
      if (other !== undefined)
        throw new UserError(
          `Sluice runs in this folder already: ${other.apiUrl} (process ${other.pid}). Stop it with Ctrl-C there, or with \`kill ${other.pid}\`.`,
        )
      if (left === 0) throw error
      await rm(running, { force: true })
    }
  }
}

const writeRecord = (file: string, record: RunningInstance) =>
  writeFile(file, JSON.stringify(record), { mode: 0o600 })

/** Returns the address at which a person logs in to the dashboard by a link. */
export function loginLink(dashboardUrl: string, token: string): string {
  return `${dashboardUrl.replace(/\/$/, '')}/login?link=${token}`
}
