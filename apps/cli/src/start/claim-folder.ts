// Claims a folder for one instance, so that two never run on the same data.
import { link, mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { processFacts } from '@sluice/servers'
import { type InstancePaths, type RunningInstance, readRunning } from './instance.ts'

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
