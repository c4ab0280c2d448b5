import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { TestScope } from './test-scope.ts'

/** One line of a process's log. */
export type LogLine = Record<string, unknown> & { msg?: string }

/** A real process of Sluice, under test. */
export interface StartedProcess {
  pid: number
  child: ChildProcess
  /** Every line so far. */
  log: LogLine[]
  /** The first line, past or to come, that is so; rejects when the process ends without it. */
  line(is: (line: LogLine) => boolean): Promise<LogLine>
  signal(name: NodeJS.Signals): void
  /** How the process ended. */
  ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
}

const ROOT = new URL('../../../', import.meta.url)

/**
 * The variables that a process under test inherits. Without the compile cache, each start of a
 * process would compile everything again.
 */
export function runtimeEnv(): NodeJS.ProcessEnv {
  const { PATH, NODE_COMPILE_CACHE } = process.env
  return { PATH, ...(NODE_COMPILE_CACHE !== undefined && { NODE_COMPILE_CACHE }) }
}

/**
 * Starts a `main.ts` (by its path from the repository's root) with these settings and nothing else
 * from the environment. Where the test ends first, it is killed.
 *
 * @param openFiles its limit of open files (`ulimit -n`).
 */
export function startProcess(
  t: TestScope,
  main: string,
  settings: Record<string, string>,
  { openFiles }: { openFiles?: number } = {},
): StartedProcess {
  const limited =
    openFiles === undefined ? [] : ['sh', '-c', `ulimit -n ${openFiles}; exec "$@"`, 'sh']
  const [program = '', ...args] = [...limited, process.execPath, fileURLToPath(new URL(main, ROOT))]
  const child = spawn(program, args, {
    env: { ...runtimeEnv(), ...settings },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  const log: LogLine[] = []
  const watchers = new Set<(line: LogLine) => void>()
  for (const stream of [child.stdout, child.stderr]) {
    if (stream === null) continue
    createInterface({ input: stream }).on('line', (text) => {
      const line = parseLine(text)
      log.push(line)
      for (const watcher of watchers) watcher(line)
    })
  }
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal }))
  t.onTestFinished(async () => {
    child.kill('SIGKILL')
    child.kill('SIGCONT')
    await ended
  })
  return {
    pid: child.pid ?? 0,
    child,
    log,
    line: (is) => waitForLine(main, log, watchers, ended, is),
    signal: (name) => void child.kill(name),
    ended,
  }
}

function waitForLine(
  main: string,
  log: LogLine[],
  watchers: Set<(line: LogLine) => void>,
  ended: Promise<unknown>,
  is: (line: LogLine) => boolean,
): Promise<LogLine> {
  const past = log.find(is)
  if (past !== undefined) return Promise.resolve(past)
  const { promise, resolve, reject } = Promise.withResolvers<LogLine>()
  const watcher = (line: LogLine) => {
    if (is(line)) resolve(line)
  }
  watchers.add(watcher)
  void ended.then(() =>
    reject(
      new Error(
        `${main} ended without the line:\n${log
          .slice(-5)
          .map((line) => JSON.stringify(line))
          .join('\n')}`,
      ),
    ),
  )
  return promise.finally(() => watchers.delete(watcher))
}

/** Node's own messages are no JSON. */
function parseLine(text: string): LogLine {
  try {
    return JSON.parse(text)
  } catch {
    return { msg: text }
  }
}
