/** Batches key lookups into one query at a time, and fails fast while MongoDB is away. */
import type { KeyAccess, KeyRecord } from './key.ts'

interface LookupOptions extends Pick<KeyAccess, 'findKeys'> {
  onError: (error: unknown) => void
  monotonic: () => number
  retryMs: number
}

type FoundKey = KeyRecord | undefined

// Some servers look up long lists of ids slowly.
const KEYS_PER_QUERY = 200

/**
 * Looks keys up. Lookups that arrive during a query form the next one, so that a flood of guesses loads MongoDB no more
 * than one caller does. After a failed query all lookups fail at once, and `retryMs` later the next one has MongoDB tried
 * again by a query that nobody waits for.
 */
export function createKeyLookups({ findKeys, onError, monotonic, retryMs }: LookupOptions) {
  const waiting: (PromiseWithResolvers<FoundKey> & { id: string })[] = []
  let isQuerying = false
  /** When MongoDB failed last, until a query succeeds. */
  let failedAt = Number.NEGATIVE_INFINITY

  async function queryAll(): Promise<void> {
    isQuerying = true
    do {
      const lookups = waiting.splice(0, KEYS_PER_QUERY)
      try {
        const found = await findKeys(lookups.map(({ id }) => id))
        failedAt = Number.NEGATIVE_INFINITY
        const records = new Map(found.map((record) => [record.id, record]))
        for (const { id, resolve } of lookups) resolve(records.get(id))
      } catch (error) {
        onError(error)
        failedAt = monotonic()
        for (const { reject } of [...lookups, ...waiting.splice(0)]) reject(error)
      }
    } while (waiting.length > 0)
    isQuerying = false
  }

  /** Returns a key's record, if one exists. Rejects if MongoDB is away or `maxWaiting` lookups are waiting. */
  return function lookUp(id: string, maxWaiting = Number.POSITIVE_INFINITY): Promise<FoundKey> {
    const lookup = { id, ...Promise.withResolvers<FoundKey>() }
    const failedFor = monotonic() - failedAt
    // Lookups during an outage notice the outage again: `retryMs` + the time of a query. An older failure says nothing.
    const isAway = failedFor < 3 * retryMs
    if (isAway || waiting.length >= maxWaiting) lookup.reject(new Error('the key was not looked up'))
    else waiting.push(lookup)
    if (!isQuerying && (!isAway || failedFor >= retryMs)) void queryAll()
    return lookup.promise
  }
}
