import { setTimeout as delay } from 'node:timers/promises'
import type { StoreCommands } from '@sluice/store'
import { isRenewing } from './paused-at.ts'

// The store's commands of a process that dies at one of its write commands.

/** The process died here. */
export class Death extends Error {}

/** When a process dies: at its n-th write command, after this share of the command was done. */
export interface Fate {
  atWrite: number
  share: number
}

/**
 * Spreads commands over a few milliseconds, so that the commands of several processes interleave in
 * ever new ways.
 */
const dawdle = () => delay(Math.random() * 6)

/**
 * The commands of a process that dies at a given write: only a share of that command reaches the
 * server, and no later command does.
 */
export function mortal(commands: StoreCommands, fate: Fate | undefined): StoreCommands {
  let writes = 0
  const isDead = () => fate !== undefined && writes >= fate.atWrite

  async function write<Item, Result>(
    items: readonly Item[],
    send: (some: readonly Item[]) => Promise<Result>,
  ) {
    await dawdle()
    writes += 1
    if (fate === undefined || !isDead()) return send(items)
    const some = items.slice(0, Math.round(items.length * fate.share))
    if (writes === fate.atWrite && some.length > 0) await send(some)
    throw new Death()
  }

  async function read<Result>(send: () => Promise<Result>): Promise<Result> {
    if (isDead()) throw new Death()
    return send()
  }

  return {
    ...commands,
    find: (name, ids) => read(() => commands.find(name, ids)),
    findWithoutTexts: (ids) => read(() => commands.findWithoutTexts(ids)),
    findVersions: (...args) => read(() => commands.findVersions(...args)),
    findQuotesOf: (id, page) => read(() => commands.findQuotesOf(id, page)),
    sumQuotes: (ids, how) => read(() => commands.sumQuotes(ids, how)),
    removeQuotes: (id, ids, upTo) => write(ids, (some) => commands.removeQuotes(id, some, upTo)),
    insert: (name, documents) => write(documents, (some) => commands.insert(name, some)),
    update: (name, statements) =>
      isRenewing(name, statements)
        ? read(() => commands.update(name, statements))
        : write(statements, (some) => commands.update(name, some)),
  }
}
