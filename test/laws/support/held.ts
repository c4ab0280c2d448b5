import type { CollectionName, StoreCommands, UpdateStatement } from '@sluice/store'

// The store's commands of a process that is paused before one of its write commands.

/** The write that was held back was never sent. */
export class HeldWriteFailed extends Error {}

/** Writes that only introduce a writer, or ask one to look, are not counted: they come once a process and at times. */
export function isAsking(name: CollectionName, statements: readonly UpdateStatement[]): boolean {
  return name === 'writers' && statements.every(({ u }) => 'asked' in u.$set)
}

/** Holds the n-th write command back until it is released or fails. All other commands pass. */
export function held(commands: StoreCommands, atWrite: number) {
  const reached = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  let writes = 0
  async function turn(): Promise<void> {
    writes += 1
    if (writes !== atWrite) return
    reached.resolve()
    await released.promise
  }
  const holding: StoreCommands = {
    ...commands,
    insert: async (name, documents) => {
      if (name !== 'writers') await turn()
      return commands.insert(name, documents)
    },
    update: async (name, statements) => {
      if (!isAsking(name, statements)) await turn()
      return commands.update(name, statements)
    },
  }
  return {
    commands: holding,
    /** Resolves when the write is held back. */
    reached: reached.promise,
    release: released.resolve,
    fail: () => released.reject(new HeldWriteFailed()),
  }
}
