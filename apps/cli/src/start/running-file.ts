import { readFile } from 'node:fs/promises'
import { processFacts } from '@sluice/servers'

/** What `start` notes of itself for others in the same folder. */
export interface RunningInstance {
  readonly pid: number
  /** Its command line: by then another program may have the number. */
  readonly command: string
  readonly apiUrl: string
  /** Where its servers are, as soon as they run. */
  readonly redisUrl?: string
  readonly mongodbUrl?: string
}

/** The `start` that a file tells of, where that process lives. */
export async function readRunning(file: string): Promise<RunningInstance | undefined> {
  const noted = parse(await readFile(file, 'utf8').catch(() => ''))
  if (noted === undefined) return undefined
  const facts = await processFacts(noted.pid)
  return facts?.command === noted.command ? noted : undefined
}

function parse(text: string): RunningInstance | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isRunningInstance(value) ? value : undefined
  } catch {
    // Cut short by a crash: then nothing runs.
    return undefined
  }
}

function isRunningInstance(value: unknown): value is RunningInstance {
  if (typeof value !== 'object' || value === null) return false
  const { pid, command, apiUrl, redisUrl, mongodbUrl } = { ...value } as Partial<Record<string, unknown>>
  const texts = [command, apiUrl, redisUrl ?? '', mongodbUrl ?? '']
  return Number.isSafeInteger(pid) && texts.every((text) => typeof text === 'string')
}
