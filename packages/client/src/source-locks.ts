// Keeps two requests for one source from being in flight at a time: a request that is sent again never passes a newer.
import { unlessAborted } from './abort.ts'
import type { ThreadRequest } from './contract.ts'

/** Runs work on these sources after all earlier work on any of them has ended. */
export type LockSources = <T>(
  sources: readonly string[],
  signal: AbortSignal | undefined,
  run: () => Promise<T>,
) => Promise<T>

export function createSourceLocks(): LockSources {
  /** The end of the last work on each source that is in flight. */
  const lastWork = new Map<string, Promise<unknown>>()

  return (sources, signal, run) => {
    const earlier = sources.map((source) => lastWork.get(source)).filter((work) => work !== undefined)
    const work = Promise.all(earlier).then(() => {
      signal?.throwIfAborted()
      return run()
    })
    const ended = work.catch(() => {})
    for (const source of sources) lastWork.set(source, ended)
    void ended.then(() => {
      for (const source of sources) if (lastWork.get(source) === ended) lastWork.delete(source)
    })
    return unlessAborted(work, signal)
  }
}

/** What identifies a thread's source. The thread need not be valid: the service refuses it then. */
export function sourceOf(thread: ThreadRequest): string {
  const { service, externalId } = Object(thread)
  return JSON.stringify([service, externalId])
}
