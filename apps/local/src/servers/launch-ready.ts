// Waits until a launched program is ready. Launches Node programs, which send a message when they are ready.
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { type LaunchedProcess, launchProcess, type Program } from './launch-process.ts'

/** A program ended, or took too long, before it was ready. The message has the end of its log. */
export class DidNotStart extends Error {
  override readonly name = 'DidNotStart'
}

interface Waiting {
  /** The program's name in messages for people. */
  title: string
  log: string
  withinMs: number
  /** Resolves once the program is ready. Rejects when the signal aborts, and never otherwise. */
  ready(signal: AbortSignal): Promise<unknown>
}

/**
 * Waits until a program is ready. If the program ends or is too slow, stops it and throws DidNotStart. If `signal`
 * aborts, stops it and throws the signal's reason.
 */
export async function untilReady(
  { died, stop }: Pick<LaunchedProcess, 'died' | 'stop'>,
  { title, log, withinMs, ready }: Waiting,
  signal: AbortSignal,
): Promise<void> {
  const failed = new AbortController()
  const timer = setTimeout(() => failed.abort(`was not ready within ${withinMs / 1_000} s`), withinMs)
  void died.then((how) => failed.abort(`ended before it was ready (${how})`))
  try {
    await ready(AbortSignal.any([signal, failed.signal]))
    // The program may have ended while another one answered in its place.
    failed.signal.throwIfAborted()
  } catch {
    await stop(signal)
    signal.throwIfAborted()
    throw new DidNotStart(`${title} ${failed.signal.reason}; the end of ${log}:\n${await endOfLog(log)}`)
  } finally {
    clearTimeout(timer)
  }
}

const shownLines = 5

/** The last lines of a log file, for a message about why its program ended; empty if the file has none. */
async function endOfLog(file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch(() => '')
  return text.trimEnd().split('\n').slice(-shownLines).join('\n')
}

/**
 * Node's flags for a process that handles many requests. V8 begins with a young generation of 1 MiB, which lets buffers
 * and parsed threads grow old. With 32 MiB, in an import of 20,000 threads, an API took 250 MiB of memory instead of
 * 340, a worker 320 instead of 370, and both some 10 % less CPU. NODE_OPTIONS does not accept the second flag, so the
 * Dockerfile and docker-compose.yml repeat both.
 */
export const NODE_FLAGS: readonly string[] = ['--max-semi-space-size=32', '--min-semi-space-size=32']

const NODE_READY_MS = 60_000

/**
 * Launches a Node program, and waits for its first message, which says that it is ready. Throws DidNotStart, or the
 * signal's reason.
 *
 * @param name the program's name in messages for people.
 */
export async function launchNode(
  name: string,
  { main, ...program }: Pick<Program, 'env' | 'log' | 'graceMs'> & { main: string },
  signal: AbortSignal,
): Promise<LaunchedProcess> {
  signal.throwIfAborted()
  const args = [...NODE_FLAGS, main]
  const launched = await launchProcess({ command: process.execPath, args, ...program, ipc: true })
  const ready = (until: AbortSignal) => once(launched.child, 'message', { signal: until })
  await untilReady(launched, { title: name, log: program.log, withinMs: NODE_READY_MS, ready }, signal)
  return launched
}
