import type { StoreCommands } from '@sluice/store'

/** Which write commands, or queries for versions, are meant. */
export type IsCommand = (kind: 'insert' | 'update' | 'findVersions', name: string) => boolean

/**
 * The store's commands of a process. Before the first command of this kind, another process acts.
 */
export function interruptedBefore(
  commands: StoreCommands,
  isMeant: IsCommand,
  act: () => Promise<unknown>,
) {
  let isDone = false
  async function before(kind: Parameters<IsCommand>[0], name: string): Promise<void> {
    if (isDone || !isMeant(kind, name)) return
    isDone = true
    await act()
  }
  const interrupted: StoreCommands = {
    ...commands,
    async insert(name, documents) {
      await before('insert', name)
      return commands.insert(name, documents)
    },
    async update(name, statements) {
      await before('update', name)
      return commands.update(name, statements)
    },
    async findVersions(name, ids, withEpoch) {
      await before('findVersions', name)
      return commands.findVersions(name, ids, withEpoch)
    },
  }
  return interrupted
}
