import { join } from 'node:path'
import { type LaunchedProcess, launchNode } from '@sluice/local'

export interface Contender {
  main: string
  /** Also the name of its log. */
  name: string
  folder: string
  env: Record<string, string>
}

const GRACE_MS = 10_000

/**
 * Starts a Node program with only these settings, and waits until it is ready. Throws DidNotStart.
 */
export function launchContender({ main, name, folder, env }: Contender): Promise<LaunchedProcess> {
  const log = join(folder, `${name}.log`)
  const ownEnv = { PATH: process.env.PATH, NODE_ENV: 'production', ...env }
  return launchNode(
    name,
    { main, env: ownEnv, log, graceMs: GRACE_MS },
    new AbortController().signal,
  )
}
