import type { Collections, WriteCommands } from '@sluice/store'

/** The write that was held up was never done. */
export class HeldWriteFailed extends Error {}

/** The real collections, as a worker has them that is held up before its n-th write command until that is let go, or fails. */
export function held(store: Collections, atWrite: number) {
  const reached = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  let writes = 0
  const holding = ({ collection, run }: WriteCommands): WriteCommands => ({
    collection,
    async run(command) {
      writes += 1
      if (writes === atWrite) {
        reached.resolve()
        await released.promise
      }
      return run(command)
    },
  })
  const { guardedSources, guardedQuotes, guardedWriters } = store
  return {
    store: {
      ...store,
      guardedSources: holding(guardedSources),
      guardedQuotes: holding(guardedQuotes),
      guardedWriters: holding(guardedWriters),
    },
    reached: reached.promise,
    release: released.resolve,
    fail: () => released.reject(new HeldWriteFailed()),
  }
}
