import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { QuoteRequest, ThreadRequest } from '@sluice/contract'
import { makeZip } from '@sluice/test-support'
import type { Run } from './percentiles.ts'
import type { MadeThread } from './threads.ts'

const run = promisify(execFile)
const MAIN = join(import.meta.dirname, '../../apps/cli/src/main.ts')

/** An export file of some threads. */
export interface ExportFile {
  name: string
  content: Buffer
}

export function ndjsonFile(threads: readonly MadeThread[]): ExportFile {
  return {
    name: 'threads.ndjson',
    content: Buffer.concat(threads.flatMap(({ body }) => [body, Buffer.from('\n')])),
  }
}

const MESSAGES_PER_FILE = 1_000
const FIRST_SECOND = 1_700_000_000

/**
 * The same threads as a Slack export: each in one channel, with its messages as replies to the
 * first, in files of a day each.
 */
export function slackFile(threads: readonly MadeThread[]): ExportFile {
  const messages = threads.flatMap(({ body }, at) => messagesOf(JSON.parse(body.toString()), at))
  const files: Record<string, string> = {
    'channels.json': JSON.stringify([{ id: 'C1', name: 'support' }]),
    'users.json': JSON.stringify(
      Array.from({ length: 500 }, (_, at) => ({ id: `U${at}`, name: `user-${at}` })),
    ),
  }
  for (let at = 0; at < messages.length; at += MESSAGES_PER_FILE) {
    const day = new Date(86_400_000 * (at / MESSAGES_PER_FILE)).toISOString().slice(0, 10)
    files[`support/${day}.json`] = JSON.stringify(messages.slice(at, at + MESSAGES_PER_FILE))
  }
  return { name: 'export.zip', content: makeZip(files) }
}

function messagesOf({ externalId, quotes }: ThreadRequest, at: number): object[] {
  const root = stamp(at, 0)
  return quotes.map(({ text, speaker }: QuoteRequest, index) => ({
    type: 'message',
    ts: stamp(at, index),
    thread_ts: root,
    user: speaker?.replace('user-', 'U'),
    // No other run has a thread of this title.
    text: index === 0 ? `${externalId}: ${text}` : text,
  }))
}

function stamp(thread: number, message: number): string {
  return `${FIRST_SECOND + thread}.${String(message).padStart(6, '0')}`
}

interface Target {
  url: string
  key: string
  /** Holds the file while it is imported. */
  folder: string
  /** Further options. */
  options: readonly string[]
}

/**
 * Runs `sluice import` on a file with this number of threads. Its own summary has the rate, which
 * leaves out the start of the process. Throws if it ends in another way than completely.
 */
export async function runImportCommand(
  { name, content }: ExportFile,
  threads: number,
  { url, key, folder, options }: Target,
): Promise<Run> {
  const own = await mkdtemp(join(folder, 'import-'))
  try {
    const file = join(own, name)
    await writeFile(file, content)
    const args = [MAIN, 'import', '--url', url, '--json', '--no-checkpoint', ...options, file]
    const { stdout } = await run(process.execPath, args, {
      env: { PATH: process.env.PATH, SLUICE_API_KEY: key },
    })
    const { seconds } = JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '')
    return {
      threads,
      rate: threads / seconds,
      p50: seconds * 1_000,
      p99: seconds * 1_000,
      failed: 0,
    }
  } finally {
    await rm(own, { recursive: true })
  }
}
