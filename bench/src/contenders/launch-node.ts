import { join } from 'node:path'
import { endOfLog, type LaunchedProcess, launchProcess, NODE_FLAGS } from '@sluice/servers'

export interface NodeProgram {
  main: string
  /** Also the name of its log. */
  name: string
  folder: string
  env: Record<string, string>
}

const GRACE_MS = 10_000
const READY_MS = 60_000

/** Starts a Node program on this process's Node, with only these settings, and waits for its message that it is ready. Throws with the end of its log where none comes. */
export async function launchNode({ main, name, folder, env }: NodeProgram): Promise<LaunchedProcess> {
  const log = join(folder, `${name}.log`)
  const launched = await launchProcess({
    command: process.execPath,
    args: [...NODE_FLAGS, main],
    env: { PATH: process.env.PATH, NODE_ENV: 'production', ...env },
    log,
    graceMs: GRACE_MS,
    ipc: true,
  })
  const how = await Promise.race([ready(launched), launched.died])
  if (how === 'ready') return launched
  await launched.stop()
  throw new Error(`${name} was not ready (${how}); the end of its log:\n${await endOfLog(log)}`)
}

function ready({ child }: LaunchedProcess): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  const timer = setTimeout(() => resolve(`not within ${READY_MS / 1000} s`), READY_MS)
  child.once('message', () => resolve('ready'))
  return promise.finally(() => clearTimeout(timer))
}
