// Looks up keys in MongoDB for a keyring, with one query at a time, and stores when keys were last
// used.
import { LRUCache } from 'lru-cache'
import type { KeyAccess, KeyRecord, KnownKey, RefusedKey } from './key.ts'
import { FIND_MS, isUsable, shortKeyId } from './key.ts'

interface LookupOptions extends Pick<KeyAccess, 'findKeys'> {
  onError: (error: unknown) => void
  monotonic: () => number
  retryMs: number
}

type FoundKey = KeyRecord | undefined

// Measured on the emulator SecantusDB: the cost of an id grows with the length of the list. Not
// measured on MongoDB.
const KEYS_PER_QUERY = 200

/**
 * Makes a function that looks up keys. Lookups that arrive during a query are combined in the next
 * query, so that a flood of guesses loads MongoDB no more than one caller does. After a failed
 * query, all lookups fail immediately. Every `retryMs`, one of them starts a query for which nobody
 * waits.
 */
export function createKeyLookups({ findKeys, onError, monotonic, retryMs }: LookupOptions) {
  const waiting: (PromiseWithResolvers<FoundKey> & { id: string })[] = []
  let isQuerying = false
  /** When the last query failed, or -Infinity after a query has succeeded. */
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

  /**
   * Returns a key's record, if one exists. Rejects if MongoDB is unavailable or `maxWaiting`
   * lookups are waiting.
   */
  return function lookUp(id: string, maxWaiting = Number.POSITIVE_INFINITY): Promise<FoundKey> {
    const lookup = { id, ...Promise.withResolvers<FoundKey>() }
    const failedFor = monotonic() - failedAt
    // During an outage, lookups renew `failedAt` within this time. If the last failure is older,
    // MongoDB may be available again.
    const isUnavailable = failedFor < 2 * retryMs + FIND_MS
    if (isUnavailable || waiting.length >= maxWaiting)
      lookup.reject(new Error('the key was not looked up'))
    else waiting.push(lookup)
    if (!isQuerying && (!isUnavailable || failedFor >= retryMs)) void queryAll()
    return lookup.promise
  }
}

/**
 * `known` is absent if the key was unknown, expired or revoked at `checkedAt`. `refused` is present
 * if it was expired or revoked.
 */
export interface CheckedKey {
  readonly known?: KnownKey
  readonly refused?: RefusedKey
  readonly expiresAt: number
  readonly checkedAt: number
}

// While this number of lookups waits, further new keys can't be checked.
const MAX_NEW_KEYS = 1_000

/**
 * Creates two caches of checks: one for keys that have worked, and one for all others.
 * @param fetch checks a key by its record.
 */
export function createCheckCaches({
  now,
  maxKeys,
  ...options
}: LookupOptions & { now: () => number; maxKeys: number }) {
  const lookUp = createKeyLookups(options)

  async function check(id: string, maxWaiting?: number, before?: CheckedKey): Promise<CheckedKey> {
    // The time before the lookup, because the result may miss a revocation during the lookup.
    const checkedAt = options.monotonic()
    const record = await lookUp(id, maxWaiting)
    if (record === undefined && before?.known)
      return {
        refused: { ...before.known, outcome: 'unknown', why: 'gone' },
        expiresAt: 0,
        checkedAt,
      }
    if (record === undefined) return { ...before, expiresAt: 0, checkedAt }
    const { role, tenant, limits, deletes, expiresAt, revokedAt } = record
    const keyId = shortKeyId(id)
    const why = revokedAt === undefined ? 'expired' : 'revoked'
    if (!isUsable(record, now()))
      return { refused: { outcome: 'unknown', keyId, tenant, why }, expiresAt: 0, checkedAt }
    const may = { ...(limits && { limits }), ...(deletes && { deletes }) }
    const known: KnownKey = { outcome: 'known', keyId, role, tenant, ...may }
    return { known, expiresAt: expiresAt?.getTime() ?? Number.POSITIVE_INFINITY, checkedAt }
  }

  // Callers that wait for a check get its result even if the key was evicted during the check.
  const shared = { max: maxKeys, ignoreFetchAbort: true }
  return {
    // If a check fails, the previous check's result stays.
    known: new LRUCache<string, CheckedKey>({
      ...shared,
      allowStaleOnFetchRejection: true,
      fetchMethod: (id, before) => check(id, undefined, before),
    }),
    // A separate cache, so that guesses do not evict known keys.
    others: new LRUCache<string, CheckedKey>({
      ...shared,
      fetchMethod: (id) => check(id, MAX_NEW_KEYS),
    }),
  }
}

const WRITE_MS = 60_000

/**
 * Writes the last uses of keys every minute, and removes the written uses from `uses`. If a write
 * fails, or the key is used again during the write, the use stays until the next minute. Returns a
 * function that stops this and writes the rest.
 */
export function writeUses(
  uses: Map<string, number>,
  { touchKeys, onError }: Pick<KeyAccess, 'touchKeys'> & { onError: (error: unknown) => void },
): () => Promise<void> {
  async function flush(): Promise<void> {
    const written = Array.from(uses)
    if (written.length === 0) return
    try {
      await touchKeys(new Map(written.map(([id, at]) => [id, new Date(at)])))
      for (const [id, at] of written) if (uses.get(id) === at) uses.delete(id)
    } catch (error) {
      onError(error)
    }
  }

  const timer = setInterval(flush, WRITE_MS).unref()
  return () => {
    clearInterval(timer)
    return flush()
  }
}
