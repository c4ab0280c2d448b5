// Launches a program whose process group ends with this process, and logs its output to a file of
// bounded size. Also waits until a program is ready.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync } from 'node:fs'
import { copyFile, readFile, stat, truncate } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setInterval } from 'node:timers/promises'
import type { Running } from './keep-running.ts'

export interface Program {
  readonly command: string
  readonly args: readonly string[]
  /**
   * The program's output is appended to this file. If the file becomes too large, its content is
   * moved to `LOG.1`.
   */
  readonly log: string
  /** Only tests set it. */
  readonly maxLogBytes?: number
  /** After SIGTERM, the program has this time to end by itself, in milliseconds. */
  readonly graceMs: number
  readonly env?: NodeJS.ProcessEnv
  /** Whether to open a channel for messages to a Node program. */
  readonly ipc?: boolean
}

export interface LaunchedProcess extends Running {
  readonly pid: number
  readonly child: ChildProcess
}

/**
 * Starts a program in a separate process group, so that the terminal's Ctrl-C does not reach it.
 * The whole group ends with this process, even if this process is killed. Throws if the program
 * can't be started.
 */
export async function launchProcess(program: Program): Promise<LaunchedProcess> {
  const child = spawnLogged(program)
  const { pid } = child
  if (pid === undefined) throw (await once(child, 'error'))[0]
  const releaseWatchdog = watchGroup(pid, program.graceMs)
  const ended = new AbortController()
  boundLog(program.log, ended.signal, program.maxLogBytes).catch(() => {})
  const died = endOf(child).then((how) => {
    signalGroup(pid, 'SIGKILL')
    releaseWatchdog()
    ended.abort()
    return how
  })
  return { pid, child, died, stop: (hurry) => stop(child, pid, died, program.graceMs, hurry) }
}

function spawnLogged({ command, args, log, env, ipc }: Program): ChildProcess {
  mkdirSync(dirname(log), { recursive: true, mode: 0o700 })
  const output = openSync(log, 'a', 0o600)
  try {
    const stdio = ['ignore', output, output, ...(ipc === true ? (['ipc'] as const) : [])] as const
    return spawn(command, [...args], { detached: true, stdio: [...stdio], ...(env && { env }) })
  } finally {
    closeSync(output)
  }
}

function endOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) =>
      resolve(signal === null ? `exit code ${code}` : `killed by ${signal}`),
    )
  })
}

async function stop(
  child: ChildProcess,
  pid: number,
  died: Promise<string>,
  graceMs: number,
  hurry?: AbortSignal,
) {
  if (hasEnded(child)) return void (await died)
  const kill = () => void (hasEnded(child) || signalGroup(pid, 'SIGKILL'))
  const timer = setTimeout(kill, graceMs)
  if (hurry?.aborted === true) kill()
  else child.kill('SIGTERM')
  hurry?.addEventListener('abort', kill, { once: true })
  await died
  clearTimeout(timer)
  hurry?.removeEventListener('abort', kill)
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null
}

/** Sends a signal to a process group. Does nothing if the group is empty. */
export function signalGroup(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-group, signal)
  } catch {}
}

// `read` ends when the pipe from this process closes, which happens whenever this process dies.
const watchdogScript = `
read -r _
kill -TERM -"$1" 2>/dev/null
left="$2"
while [ "$left" -gt 0 ] && kill -0 -"$1" 2>/dev/null; do sleep 0.1; left=$((left - 1)); done
kill -KILL -"$1" 2>/dev/null
`

/**
 * Ends a process group when this process has ended, even by SIGKILL. A shell that outlives this
 * process watches for that. It sends SIGTERM and, `graceMs` milliseconds later, SIGKILL. If the
 * shell dies, another one replaces it. Returns a function that ends it.
 */
function watchGroup(group: number, graceMs: number): () => void {
  let released = false
  let shell = start()

  function start() {
    const started = spawn(
      'sh',
      ['-c', watchdogScript, 'watchdog', String(group), String(Math.ceil(graceMs / 100))],
      {
        detached: true,
        stdio: ['pipe', 'ignore', 'ignore'],
      },
    )
    started.once('error', () => {})
    started.stdin.once('error', () => {})
    started.once('exit', () => {
      if (!released) shell = start()
    })
    return started
  }

  return () => {
    released = true
    shell.kill('SIGKILL')
  }
}

/** The bound of a log. The earlier part, `LOG.1`, has the same bound. */
const LOG_BYTES = 32 * 1024 * 1024
const LOOK_MS = 500

/**
 * Bounds a log until the signal aborts. The program, which must have opened the file for appending,
 * continues to write to the same file. So the file is copied, then emptied. Lines that are written
 * between these two steps are lost.
 */
async function boundLog(file: string, signal: AbortSignal, maxBytes = LOG_BYTES): Promise<void> {
  // If the disk is full, or somebody has removed the log, the next check tries again.
  for await (const _ of setInterval(LOOK_MS, undefined, { ref: false, signal }))
    await rotate(file, maxBytes).catch(() => {})
}

async function rotate(file: string, maxBytes: number): Promise<void> {
  if ((await stat(file)).size <= maxBytes) return
  await copyFile(file, `${file}.1`).catch(() => {})
  await truncate(file, 0)
}

/**
 * A program ended, or took too long, before it was ready. The message contains the end of its log.
 */
export class DidNotStart extends Error {
  override readonly name = 'DidNotStart'
}

interface Waiting {
  /** The program's name in messages for people. */
  title: string
  log: string
  withinMs: number
  /** Resolves when the program is ready. Rejects only when the signal aborts. */
  ready(signal: AbortSignal): Promise<unknown>
}

/**
 * Waits until a program is ready. If the program ends or is too slow, stops it and throws
 * DidNotStart. If `signal` aborts, stops it and throws the signal's reason.
 */
export async function untilReady(
  { died, stop }: Pick<LaunchedProcess, 'died' | 'stop'>,
  { title, log, withinMs, ready }: Waiting,
  signal: AbortSignal,
): Promise<void> {
  const failed = new AbortController()
  const timer = setTimeout(
    () => failed.abort(`was not ready within ${withinMs / 1_000} s`),
    withinMs,
  )
  void died.then((how) => failed.abort(`ended before it was ready (${how})`))
  try {
    await ready(AbortSignal.any([signal, failed.signal]))
    // The program may have ended, and another one may have answered in its place.
    failed.signal.throwIfAborted()
  } catch {
    await stop(signal)
    signal.throwIfAborted()
    throw new DidNotStart(
      `${title} ${failed.signal.reason}; the end of ${log}:\n${await endOfLog(log)}`,
    )
  } finally {
    clearTimeout(timer)
  }
}

const shownLines = 5

async function endOfLog(file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch(() => '')
  return text.trimEnd().split('\n').slice(-shownLines).join('\n')
}

/**
 * Node's flags for a process that handles many requests. V8 begins with a young generation of 1
 * MiB, in which buffers and parsed threads become old too soon. With 32 MiB, an import took a
 * quarter less memory and 10 % less CPU. NODE_OPTIONS does not accept the second flag, so the
 * Dockerfile and docker-compose.yml repeat both.
 */
export const NODE_FLAGS: readonly string[] = [
  '--max-semi-space-size=32',
  '--min-semi-space-size=32',
]

const NODE_READY_MS = 60_000

/**
 * Launches a Node program, and waits for its first message, which says that it is ready.
 *
 * @param name the program's name in messages for people.
 * @throws {DidNotStart} or the signal's reason.
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
  await untilReady(
    launched,
    { title: name, log: program.log, withinMs: NODE_READY_MS, ready },
    signal,
  )
  return launched
}
