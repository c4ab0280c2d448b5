// Listens for requests to stop this process: signals, and the end of its parent.
const parentPollMs = 1_000
/** One Ctrl-C may arrive twice: from the terminal, and from a package manager that forwards it. */
const sameCtrlCMs = 1_000

/**
 * Listens for SIGINT, SIGTERM, SIGHUP, and the end of the parent (a package manager that is killed forwards no signal).
 * The first request aborts `stopping`, whose reason says why; another one a second later aborts `hurry`. `release` stops
 * listening.
 *
 * @param outlivesTerminal whether the process goes on after its terminal and its parent, as under `nohup`.
 */
export function stopRequests({ outlivesTerminal = false } = {}) {
  const stopping = new AbortController()
  const hurry = new AbortController()
  let firstAt = Number.POSITIVE_INFINITY

  const request = (why: string) => {
    if (performance.now() - firstAt > sameCtrlCMs) hurry.abort(new Error(why))
    if (stopping.signal.aborted) return
    firstAt = performance.now()
    stopping.abort(new Error(why))
  }

  const parent = process.ppid
  const checkParent = () => {
    if (process.ppid === parent) return
    clearInterval(poll)
    request('its parent ended')
  }

  const signals: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', ...(outlivesTerminal ? [] : (['SIGHUP'] as const))]
  for (const signal of signals) process.on(signal, request)
  const poll = outlivesTerminal ? undefined : setInterval(checkParent, parentPollMs)
  poll?.unref()

  return {
    stopping: stopping.signal,
    hurry: hurry.signal,
    release() {
      clearInterval(poll)
      for (const signal of signals) process.off(signal, request)
    },
  }
}
