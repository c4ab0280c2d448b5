import { link, mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { processFacts } from '@sluice/servers'
import type { InstancePaths } from './instance-folder.ts'
import { type RunningInstance, readRunning } from './running-file.ts'

/** Another `start` runs in this folder. */
export class AlreadyRunning extends Error {
  override readonly name = 'AlreadyRunning'

  constructor({ pid, apiUrl }: RunningInstance) {
    super(
      `Sluice runs in this folder already: ${apiUrl} (process ${pid}). Stop it by Ctrl-C there, or by \`kill ${pid}\`.`,
    )
  }
}

export interface Claim {
  /** Notes where the servers are, for other commands. */
  tell(urls: { redisUrl: string; mongodbUrl: string }): Promise<void>
  release(): Promise<void>
}

/** Makes the folder this process's own; throws AlreadyRunning. */
export async function claimFolder({ root, running }: InstancePaths, apiUrl: string): Promise<Claim> {
  await mkdir(root, { recursive: true, mode: 0o700 })
  const facts = await processFacts(process.pid)
  const self: RunningInstance = { pid: process.pid, command: facts?.command ?? '', apiUrl }
  const draft = `${running}.${process.pid}`
  try {
    await writeNote(draft, self)
    await claim(draft, running)
  } finally {
    await rm(draft, { force: true })
  }
  return {
    async tell(urls) {
      await writeNote(draft, { ...self, ...urls })
      await rename(draft, running)
    },
    release: () => rm(running, { force: true }),
  }
}

/** `link` makes the whole note appear at once, and fails where there is one: of two that start together one wins. */
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

function writeNote(file: string, note: RunningInstance): Promise<void> {
  return writeFile(file, JSON.stringify(note), { mode: 0o600 })
}
