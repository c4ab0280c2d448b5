// Keeps something running: restarts it whenever it dies, until it is stopped.
import { setTimeout as pause } from 'node:timers/promises'

export interface Running {
  /** Resolves when it has ended. The value is the cause: `exit code 1`, `killed by SIGKILL`. */
  readonly died: Promise<string>
  /** Ends it and waits until it has ended. If `hurry` aborts, kills it. May be called twice. */
  stop(hurry?: AbortSignal): Promise<void>
}

const firstPauseMs = 200
/**
 * After many failed starts, a person must help, and more frequent starts would only fill the log.
 */
const longestPauseMs = 60_000
/**
 * If it has run for this time, its start counts as a success, and the next death begins with the
 * shortest pause.
 */
const settledMs = 10_000

export interface Kept<R extends Running> {
  /** Returns the one that runs now or, while the next one is being started, the last one. */
  current(): R
  /** Ends it as `Running.stop` does, and does not start it again. */
  stop(hurry?: AbortSignal): Promise<void>
}

export interface KeepRunning<R extends Running> {
  /**
   * Starts it, and waits until it is ready. Throws soon after `signal` aborts. If it throws,
   * nothing is left running.
   */
  launch(signal: AbortSignal): Promise<R>
  name: string
  log: string
  /** Called with a line about each unrequested death and each restart. */
  say(line: string): void
  /** Returns what people can do after this number of failed restarts. */
  adviceAfter(failures: number): string
  /** Abandons the first start. */
  signal?: AbortSignal
}

/**
 * Starts something, and restarts it whenever it dies, after pauses that grow. Throws what the first
 * start throws.
 */
export async function keepRunning<R extends Running>(options: KeepRunning<R>): Promise<Kept<R>> {
  const { name, log, say, adviceAfter } = options
  const stopping = new AbortController()
  let running = await options.launch(options.signal ?? stopping.signal)
  const watching = watch()

  async function watch(): Promise<void> {
    let pauseMs = firstPauseMs
    let startedAt = performance.now()
    let failures = 0
    while (!stopping.signal.aborted) {
      const detail = await running.died
      if (stopping.signal.aborted) return
      if (failures === 0) say(`${name} ended (${detail}); starting it again. Its log: ${log}`)
      if (failures === 0 && performance.now() - startedAt > settledMs) pauseMs = firstPauseMs
      await pause(pauseMs, undefined, { signal: stopping.signal }).catch(() => {})
      if (stopping.signal.aborted) return
      pauseMs = Math.min(pauseMs * 2, longestPauseMs)
      try {
        running = await options.launch(stopping.signal)
        startedAt = performance.now()
        failures = 0
        if (!stopping.signal.aborted) say(`${name} runs again`)
      } catch (error) {
        if (stopping.signal.aborted) return
        failures += 1
        say(`${name} could not be started again: ${error instanceof Error ? error.message : error}`)
        say(
          `Attempt ${failures + 1} follows in ${Math.ceil(pauseMs / 1_000)} s. ${adviceAfter(failures)}`.trimEnd(),
        )
      }
    }
  }

  async function stop(hurry?: AbortSignal): Promise<void> {
    stopping.abort()
    await running.stop(hurry)
    await watching
    // A restart in progress may have finished before it noticed the abort. Then `running` is a new
    // one.
    await running.stop(hurry)
  }

  return { current: () => running, stop }
}
