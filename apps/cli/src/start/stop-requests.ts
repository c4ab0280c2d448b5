const parentPollMs = 1_000
/** One Ctrl-C reaches us twice where a package manager passes it on besides the terminal. */
const sameCtrlCMs = 1_000

export interface StopRequests {
  /** Aborts when this process is to stop, with why. */
  readonly stopping: AbortSignal
  /** Aborts when it is to stop at once. */
  readonly hurry: AbortSignal
  /** Lets go of the signals. */
  release(): void
}

/**
 * Listens for all that asks this process to stop: SIGINT, SIGTERM, SIGHUP, and the end of its parent (a package
 * manager that is killed passes nothing on). Asked again, it is to hurry.
 */
export function stopRequests(): StopRequests {
  const stopping = new AbortController()
  const hurry = new AbortController()
  let firstAt = Number.POSITIVE_INFINITY

  const ask = (why: string) => {
    if (performance.now() - firstAt > sameCtrlCMs) hurry.abort(new Error(why))
    if (stopping.signal.aborted) return
    firstAt = performance.now()
    stopping.abort(new Error(why))
  }

  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const signal of signals) process.on(signal, ask)
  const parent = process.ppid
  const poll = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(poll)
    ask('its parent ended')
  }, parentPollMs)
  poll.unref()

  return {
    stopping: stopping.signal,
    hurry: hurry.signal,
    release() {
      clearInterval(poll)
      for (const signal of signals) process.off(signal, ask)
    },
  }
}
