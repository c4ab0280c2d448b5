// Listens for requests to stop this process: signals, and the end of its parent.
import { processFacts } from './process-facts.ts'

const parentPollMs = 1_000
/** One Ctrl-C may arrive twice: from the terminal, and from a package manager that forwards it. */
const sameCtrlCMs = 1_000

/**
 * Listens for requests to stop: signals, and the end of the parent or of a package manager above it
 * (if these get a SIGKILL, this process gets no signal). The first request aborts `stopping`, whose
 * reason says why. A request more than a second later aborts `hurry`.
 *
 * @param outlivesTerminal whether the process continues after its terminal and its parent have
 * ended, as under `nohup`.
 */
export function listenForStop({ outlivesTerminal = false } = {}) {
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
  const runners = outlivesTerminal ? [] : runnersFrom(parent)
  const checkParents = async () => {
    if (process.ppid === parent && (await areLinked(await runners))) return
    clearInterval(poll)
    request('its parent ended')
  }

  const signals: readonly NodeJS.Signals[] = [
    'SIGINT',
    'SIGTERM',
    ...(outlivesTerminal ? [] : (['SIGHUP'] as const)),
  ]
  for (const signal of signals) process.on(signal, request)
  const poll = outlivesTerminal ? undefined : setInterval(() => void checkParents(), parentPollMs)
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

/**
 * Matches the command line of a package manager, or of the shell that it starts (pnpm's shell stays
 * alive because of a `trap`).
 */
const RUNNER = /(?:^|[\s/])(?:p?np[mx]\b|sh -c )/

/**
 * Returns `pid` and its ancestors, nearest first, up to the first one that is neither a package
 * manager nor a package manager's shell.
 */
async function runnersFrom(pid: number): Promise<readonly number[]> {
  const facts = await processFacts(pid)
  if (facts === undefined || !RUNNER.test(facts.command)) return []
  return [pid, ...(await runnersFrom(facts.parent))]
}

/** Returns whether each of these processes is still the child of the next one. */
async function areLinked(pids: readonly number[]): Promise<boolean> {
  const parents = await Promise.all(
    pids.slice(0, -1).map(async (pid) => (await processFacts(pid))?.parent),
  )
  return parents.every((parent, at) => parent === pids[at + 1])
}
