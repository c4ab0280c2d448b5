import type { Db } from 'mongodb'
import { keyCollection, toRecord } from './key-collection.ts'
import type { KeyRecord } from './key-record.ts'

/** What a keyring needs of a store; both reject soon where the store is away. */
export interface KeyAccess {
  /** The records that there are for some ids, in any order. */
  findKeys(ids: readonly string[]): Promise<KeyRecord[]>
  /** Notes when keys were last used; an earlier time never replaces a later one. */
  touchKeys(uses: ReadonlyMap<string, Date>): Promise<void>
}

// A look-up that takes longer counts as failed: somebody waits for it.
const FIND_MS = 1_000
const TOUCH_MS = 5_000

/** The keys in a database, for a keyring. Every call has a time limit of its own, whatever the client's are. */
export function keyAccess(db: Db): KeyAccess {
  const keys = keyCollection(db)
  return {
    findKeys: async (ids) => {
      // The signal is what ends a call to a server that fell silent: the driver's `timeoutMS` has no effect any more.
      // All of them in the first reply, which by default ends at 101.
      const options = { signal: AbortSignal.timeout(FIND_MS), maxTimeMS: FIND_MS, batchSize: ids.length + 1 }
      return (await keys.find({ _id: { $in: [...ids] } }, options).toArray()).map(toRecord)
    },
    touchKeys: async (uses) => {
      const updates = Array.from(uses, ([id, at]) => ({
        // $max, because replicas flush in any order and their clocks differ.
        updateOne: { filter: { _id: id }, update: { $max: { lastUsedAt: at } } },
      }))
      await inTime(keys.bulkWrite(updates, { ordered: false, writeConcern: { w: 1 }, maxTimeMS: TOUCH_MS }))
    },
  }
}

/** Writes take no signal: one that hangs is left to the driver, which ends it when its monitor gives the server up. */
async function inTime(write: Promise<unknown>): Promise<void> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error(`no answer within ${TOUCH_MS} ms`)), TOUCH_MS)
  try {
    await Promise.race([write, late.promise])
  } finally {
    clearTimeout(timer)
  }
}
