import type { CollectionName, StoreCommands, UpdateStatement } from '@sluice/store'

// The store's commands of a process that is paused before one of its write commands.

/** The process failed before it sent the write at which it was paused. */
export class PausedWriteFailed extends Error {}

/** Writes that only renew reservations are not counted: they happen after a time. */
export function isRenewing(name: CollectionName, statements: readonly UpdateStatement[]): boolean {
  return (
    name === 'sources' &&
    statements.every(({ u }) => 'meta.tokens' in (u.$set ?? {}) && !('meta.version' in u.$set))
  )
}

/**
 * Pauses a process before its n-th write command, until the test releases it or lets the write
 * fail. All other commands pass.
 */
export function pausedAt(commands: StoreCommands, atWrite: number) {
  const reached = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  let writes = 0
  async function pause(): Promise<void> {
    writes += 1
    if (writes !== atWrite) return
    reached.resolve()
    await released.promise
  }
  const pausing: StoreCommands = {
    ...commands,
    insert: async (name, documents) => {
      await pause()
      return commands.insert(name, documents)
    },
    update: async (name, statements) => {
      if (!isRenewing(name, statements)) await pause()
      return commands.update(name, statements)
    },
  }
  return {
    commands: pausing,
    /** Resolves when the process is paused. */
    reached: reached.promise,
    release: released.resolve,
    fail: () => released.reject(new PausedWriteFailed()),
  }
}
