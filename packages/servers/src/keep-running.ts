// Keeps something running: restarts it whenever it dies, until it is stopped.
import { setTimeout as pause } from 'node:timers/promises'

/** Something that runs until it dies or is stopped. */
export interface Running {
  /** Resolves when it has ended, with how: `exit code 1`, `killed by SIGKILL`. */
  readonly died: Promise<string>
  /** Ends it and waits until it is gone; may be called twice. Kills it once `hurry` aborts. */
  stop(hurry?: AbortSignal): Promise<void>
}

const firstPauseMs = 200
/** After many failed starts a person must help, and frequent starts would only fill the log. */
const longestPauseMs = 60_000
/** A start counts as a success after this time: the pauses begin anew at the next death. */
const settledMs = 10_000

export interface Kept<R extends Running> {
  /** The one that runs now, or that ran last while the next is being started. */
  current(): R
  /** Ends it for good and waits until it is gone; may be called twice. */
  stop(hurry?: AbortSignal): Promise<void>
}

export interface KeepRunning<R extends Running> {
  /** Starts one and waits until it is ready. Throws soon after `signal` aborts; leaves nothing running if it throws. */
  launch(signal: AbortSignal): Promise<R>
  /** For people. */
  name: string
  /** The file with its output. */
  log: string
  /** Receives a line about each unrequested death and each restart. */
  say(line: string): void
  /** What people can do after this number of failed restarts. */
  adviceAfter(failures: number): string
  /** Abandons the first start. */
  signal?: AbortSignal
}

/** Starts something and restarts it whenever it dies, after growing pauses. Throws what the first start throws. */
export async function keepRunning<R extends Running>(options: KeepRunning<R>): Promise<Kept<R>> {
  const { name, log, say, adviceAfter } = options
  const stopping = new AbortController()
  let running = await options.launch(options.signal ?? stopping.signal)
  let startedAt = performance.now()
  const watching = watch()

  async function watch(): Promise<void> {
    let pauseMs = firstPauseMs
    for (;;) {
      const detail = await running.died
      if (stopping.signal.aborted) return
      say(`${name} died (${detail}); starting it again. Its log: ${log}`)
      if (performance.now() - startedAt > settledMs) pauseMs = firstPauseMs
      const next = await relaunch(pauseMs)
      if (next === undefined) return
      running = next
      if (stopping.signal.aborted) return
      say(`${name} runs again`)
      startedAt = performance.now()
      pauseMs = longer(pauseMs)
    }
  }

  async function relaunch(firstMs: number): Promise<R | undefined> {
    for (let ms = firstMs, failures = 1; ; failures++) {
      await pause(ms, undefined, { signal: stopping.signal }).catch(() => {})
      if (stopping.signal.aborted) return undefined
      try {
        return await options.launch(stopping.signal)
      } catch (error) {
        ms = longer(ms)
        if (stopping.signal.aborted) return undefined
        say(`${name} could not be started again: ${error instanceof Error ? error.message : error}`)
        say(`Try ${failures + 1} follows in ${Math.ceil(ms / 1_000)} s. ${adviceAfter(failures)}`.trimEnd())
      }
    }
  }

  async function stop(hurry?: AbortSignal): Promise<void> {
    stopping.abort()
    await running.stop(hurry)
    await watching
    // A restart in progress may have finished before the abort reached it: then another one runs now.
    await running.stop(hurry)
  }

  return { current: () => running, stop }
}

function longer(ms: number): number {
  return Math.min(ms * 2, longestPauseMs)
}
