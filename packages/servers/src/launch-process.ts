import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Running } from './running.ts'
import { watchGroup } from './watchdog.ts'

export interface Program {
  readonly command: string
  readonly args: readonly string[]
  /** The file that its output is appended to. */
  readonly log: string
  /** How long it may take to end by itself after SIGTERM, in milliseconds. */
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
 * Starts a program in a process group of its own, so that a terminal's Ctrl-C does not reach it, and sees to it that
 * the whole group ends with this process, even where that is killed. Throws where the program can't be started.
 */
export async function launchProcess(program: Program): Promise<LaunchedProcess> {
  const child = spawnLogged(program)
  const { pid } = child
  if (pid === undefined) throw await failureOf(child)
  const watchdog = watchGroup(pid, program.graceMs)
  const died = endOf(child).then((how) => {
    signalGroup(pid, 'SIGKILL')
    watchdog.release()
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

async function failureOf(child: ChildProcess): Promise<unknown> {
  const [error] = await once(child, 'error')
  return error
}

function endOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve(signal === null ? `exit code ${code}` : `killed by ${signal}`))
  })
}

async function stop(child: ChildProcess, pid: number, died: Promise<string>, graceMs: number, hurry?: AbortSignal) {
  if (hasEnded(child)) return void (await died)
  child.kill('SIGTERM')
  const kill = () => void (hasEnded(child) || signalGroup(pid, 'SIGKILL'))
  const timer = setTimeout(kill, graceMs)
  if (hurry?.aborted === true) kill()
  hurry?.addEventListener('abort', kill, { once: true })
  await died
  clearTimeout(timer)
  hurry?.removeEventListener('abort', kill)
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null
}

/** The group may be empty by now, and then there is nothing to signal. */
function signalGroup(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-group, signal)
  } catch {}
}
