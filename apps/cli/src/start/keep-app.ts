// Runs one of Sluice's own processes: waits until it is ready, and restarts it when it dies.
import { join } from 'node:path'
import { endOfLog, type Kept, keepRunning, type LaunchedProcess, launchProcess } from '@sluice/servers'

/** One of Sluice's own processes. */
export interface App {
  /** Also the name of its log. */
  readonly name: string
  /** The file to run. */
  readonly main: string
  readonly env: NodeJS.ProcessEnv
}

/** An app ended, or took too long, before it was ready. */
export class AppDidNotStart extends Error {
  override readonly name = 'AppDidNotStart'
}

export interface KeepApp {
  readonly logs: string
  /** How long it may take to stop, in milliseconds. */
  readonly graceMs: number
  readonly say: (line: string) => void
  readonly signal: AbortSignal
}

const readyWithinMs = 60_000

/** Starts an app, waits for its message that it is ready, and restarts it whenever it dies. Throws AppDidNotStart, or the signal's reason. */
export function keepApp(app: App, { logs, graceMs, say, signal }: KeepApp): Promise<Kept<LaunchedProcess>> {
  const log = join(logs, `${app.name}.log`)
  return keepRunning({
    launch: (launchSignal) => launchApp(app, log, graceMs, launchSignal),
    onDeath: (detail) => say(`${app.name} died (${detail}); starting it again. Its log: ${log}`),
    onFailedRestart: (detail, failures, nextMs) => {
      say(`${app.name} could not be started again: ${detail}`)
      say(
        `Try ${failures + 1} follows in ${Math.ceil(nextMs / 1_000)} s. If the reason stays, stop with Ctrl-C and fix it.`,
      )
    },
    onRestart: ({ pid }) => say(`${app.name} runs again (process ${pid})`),
    signal,
  })
}

async function launchApp(app: App, log: string, graceMs: number, signal: AbortSignal): Promise<LaunchedProcess> {
  signal.throwIfAborted()
  const launched = await launchProcess({
    command: process.execPath,
    args: [app.main],
    env: app.env,
    log,
    graceMs,
    ipc: true,
  })
  try {
    await untilReady(launched, signal)
    return launched
  } catch (error) {
    await launched.stop(signal)
    if (!(error instanceof AppDidNotStart)) throw error
    throw new AppDidNotStart(`${app.name} ${error.message}; the end of ${log}:\n${await endOfLog(log)}`)
  }
}

function untilReady({ child, died }: LaunchedProcess, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const late = () => reject(new AppDidNotStart(`was not ready within ${readyWithinMs / 1000} s`))
  const timer = setTimeout(late, readyWithinMs)
  const abort = () => reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  child.on('message', (message) => {
    if (isReady(message)) resolve()
  })
  void died.then((how) => reject(new AppDidNotStart(`ended before it was ready (${how})`)))
  return promise.finally(() => {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
  })
}

function isReady(message: unknown): boolean {
  return typeof message === 'object' && message !== null && 'ready' in message && message.ready === true
}
