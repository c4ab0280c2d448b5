// Keeps two requests for the same source from being in flight together, so that a retry never
// arrives after a newer request.
import { unlessAborted } from './abort.ts'
import type { ThreadRequest } from './contract.ts'

/** Runs work on these sources when all earlier work on any of them has ended. */
export type LockSources = <T>(
  sources: readonly string[],
  signal: AbortSignal | undefined,
  run: () => Promise<T>,
) => Promise<T>

/** Creates the locks of one client. */
export function createSourceLocks(): LockSources {
  /** For each source with work in progress: resolves when the last work on it has ended. */
  const lastWork = new Map<string, Promise<unknown>>()

  return (sources, signal, run) => {
    const earlier = sources
      .map((source) => lastWork.get(source))
      .filter((work) => work !== undefined)
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

/**
 * Returns a text that identifies the source of a thread. The thread may be invalid, because the
 * service then refuses it.
 */
export function sourceOf(thread: ThreadRequest): string {
  const { service, externalId } = Object(thread)
  return JSON.stringify([service, externalId])
}
