import { setTimeout as delay } from 'node:timers/promises'
import type { Collections } from '@sluice/store'

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
  const dying = (collection: Collections['guardedSources']) =>
    new Proxy(collection, {
      get(target, name) {
        if (name !== 'bulkWrite') return Reflect.get(target, name)
        return async (...[operations, options]: Parameters<typeof collection.bulkWrite>) => {
          await dawdle()
          writes += 1
          if (fate === undefined || writes < fate.atWrite) return target.bulkWrite(operations, options)
          const some = operations.slice(0, Math.round(operations.length * fate.share))
          if (writes === fate.atWrite && some.length > 0) await target.bulkWrite(some, options).catch(() => {})
          throw new Death()
        }
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
