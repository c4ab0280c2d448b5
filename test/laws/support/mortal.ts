import { setTimeout as delay } from 'node:timers/promises'
import type { Collections, WriteCommand, WriteCommands } from '@sluice/store'

/** The process died here. */
export class Death extends Error {}

/** When a worker dies: at its n-th write command, after so large a share of it was done. */
export interface Fate {
  atWrite: number
  share: number
}

/** Spreads commands over a few milliseconds, so that the workers' commands fall between each other's in ever new ways. */
const dawdle = () => delay(Math.random() * 6)

/**
 * The real collections, as a worker has them that dies at a given write: of that command only a share of the writes reaches the server, and no later
 * one does.
 */
export function mortal(store: Collections, fate: Fate | undefined): Collections {
  let writes = 0
  const dying = ({ collection, run }: WriteCommands): WriteCommands => ({
    collection,
    async run(command) {
      await dawdle()
      writes += 1
      if (fate === undefined || writes < fate.atWrite) return run(command)
      // A command of nothing is refused.
      if (writes === fate.atWrite) await run(shareOf(command, fate.share)).catch(() => {})
      throw new Death()
    },
  })
  const { guardedSources, guardedQuotes, guardedWriters } = store
  return {
    ...store,
    guardedSources: dying(guardedSources),
    guardedQuotes: dying(guardedQuotes),
    guardedWriters: dying(guardedWriters),
  }
}

function shareOf(command: WriteCommand, share: number): WriteCommand {
  const some = <Item>(all: Item[]) => all.slice(0, Math.round(all.length * share))
  return 'insert' in command ? { insert: some(command.insert) } : { update: some(command.update) }
}
