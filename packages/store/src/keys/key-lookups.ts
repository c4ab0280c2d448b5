/** Batches key lookups into one query at a time, and fails fast while MongoDB is away. */
import { setTimeout as delay } from 'node:timers/promises'
import type { KeyAccess, KeyRecord } from './key.ts'

interface LookupOptions extends Pick<KeyAccess, 'findKeys'> {
  onError: (error: unknown) => void
  retryMs: number
}

type FoundKey = KeyRecord | undefined

// Some servers look up long lists of ids slowly.
const KEYS_PER_QUERY = 200

/**
 * Looks keys up. Lookups that arrive during a query form the next one, so that a flood of guesses loads MongoDB no more
 * than one caller does. After a failed query all lookups fail at once, until a probe every `retryMs` finds that
 * MongoDB answers.
 */
export function createKeyLookups({ findKeys, onError, retryMs }: LookupOptions) {
  const waiting: (PromiseWithResolvers<FoundKey> & { id: string })[] = []
  let isQuerying = false
  let isFailing = false
  let isClosed = false

  async function queryAll(): Promise<void> {
    isQuerying = true
    while (waiting.length > 0) {
      const lookups = waiting.splice(0, KEYS_PER_QUERY)
      try {
        const found = await findKeys(lookups.map(({ id }) => id))
        const records = new Map(found.map((record) => [record.id, record]))
        for (const { id, resolve } of lookups) resolve(records.get(id))
      } catch (error) {
        onError(error)
        isFailing = true
        for (const { reject } of [...lookups, ...waiting.splice(0)]) reject(error)
        void probe()
      }
    }
    isQuerying = false
  }

  /** Sends queries for no ids: they show whether MongoDB answers, and cost MongoDB next to nothing. */
  async function probe(): Promise<void> {
    while (isFailing && !isClosed) {
      await delay(retryMs, undefined, { ref: false })
      isFailing = await findKeys([]).then(
        () => false,
        () => true,
      )
    }
  }

  return {
    /** Returns a key's record, if one exists. Rejects if MongoDB is away or `maxWaiting` lookups are waiting. */
    lookUp(id: string, maxWaiting = Number.POSITIVE_INFINITY): Promise<FoundKey> {
      const lookup = { id, ...Promise.withResolvers<FoundKey>() }
      if (isFailing || waiting.length >= maxWaiting) lookup.reject(new Error('the key was not looked up'))
      else waiting.push(lookup)
      if (!isQuerying) void queryAll()
      return lookup.promise
    },
    /** Ends the probes. */
    close(): void {
      isClosed = true
    },
  }
}
