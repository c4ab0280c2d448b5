// Looks keys up in MongoDB for a keyring, one query at a time, and stores when keys were last used.
import { LRUCache } from 'lru-cache'
import type { KeyAccess, KeyRecord, KnownKey, RefusedKey } from './key.ts'
import { FIND_MS, isLive, shortKeyId } from './key.ts'

interface LookupOptions extends Pick<KeyAccess, 'findKeys'> {
  onError: (error: unknown) => void
  monotonic: () => number
  retryMs: number
}

type FoundKey = KeyRecord | undefined

// The cost of an id grows with the length of the list: measured on the development emulator, not on
// MongoDB.
const KEYS_PER_QUERY = 200

/**
 * Makes a function that looks keys up. Lookups that arrive during a query form the next one, so
 * that a flood of guesses loads MongoDB no more than one caller does. After a failed query, all
 * lookups fail at once, and every `retryMs` one of them starts a query that nobody waits for.
 */
export function createKeyLookups({ findKeys, onError, monotonic, retryMs }: LookupOptions) {
  const waiting: (PromiseWithResolvers<FoundKey> & { id: string })[] = []
  let isQuerying = false
  /** The time of the last failed query; -Infinity once a query succeeds. */
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
    // During an outage, lookups renew `failedAt` within this time. After an older failure, MongoDB
    // may be back.
    const isUnavailable = failedFor < 2 * retryMs + FIND_MS
    if (isUnavailable || waiting.length >= maxWaiting)
      lookup.reject(new Error('the key was not looked up'))
    else waiting.push(lookup)
    if (!isQuerying && (!isUnavailable || failedFor >= retryMs)) void queryAll()
    return lookup.promise
  }
}

/**
 * `known` is absent if the key was unknown, expired or revoked at `checkedAt`; `refused` is present
 * in the last two cases.
 */
export interface CheckedKey {
  readonly known?: KnownKey
  readonly refused?: RefusedKey
  readonly expiresAt: number
  readonly checkedAt: number
}

// While this number of lookups waits, checks of further new keys fail.
const MAX_NEW_KEYS = 1_000

/**
 * Creates two caches of checks: of keys that worked once, and of all others. `fetch` checks a key
 * by its record.
 */
export function createCheckCaches({
  now,
  maxKeys,
  ...options
}: LookupOptions & { now: () => number; maxKeys: number }) {
  const lookUp = createKeyLookups(options)

  async function check(id: string, maxWaiting?: number, before?: CheckedKey): Promise<CheckedKey> {
    // The moment before the lookup: its result may miss a revocation during the lookup.
    const checkedAt = options.monotonic()
    const record = await lookUp(id, maxWaiting)
    if (record === undefined && before?.known)
      return {
        refused: { ...before.known, outcome: 'unknown', why: 'gone' },
        expiresAt: 0,
        checkedAt,
      }
    if (record === undefined) return { ...before, expiresAt: 0, checkedAt }
    const { role, tenant, limits, expiresAt, revokedAt } = record
    const keyId = shortKeyId(id)
    const why = revokedAt === undefined ? 'expired' : 'revoked'
    if (!isLive(record, now()))
      return { refused: { outcome: 'unknown', keyId, tenant, why }, expiresAt: 0, checkedAt }
    const known: KnownKey = { outcome: 'known', keyId, role, tenant, ...(limits && { limits }) }
    return { known, expiresAt: expiresAt?.getTime() ?? Number.POSITIVE_INFINITY, checkedAt }
  }

  // Callers that wait for a check get its result also if the key was evicted meanwhile.
  const shared = { max: maxKeys, ignoreFetchAbort: true }
  return {
    // If a check fails, the result of the check before it stays.
    known: new LRUCache<string, CheckedKey>({
      ...shared,
      allowStaleOnFetchRejection: true,
      fetchMethod: (id, before) => check(id, undefined, before),
    }),
    // Guesses are not among the known keys, so they evict none of them.
    others: new LRUCache<string, CheckedKey>({
      ...shared,
      fetchMethod: (id) => check(id, MAX_NEW_KEYS),
    }),
  }
}

const WRITE_MS = 60_000

/**
 * Writes the last uses of keys every minute, and removes the written ones from `uses`. A use whose
 * write failed, or a newer use of the key, stays for the next minute. Returns a function that ends
 * the timer and writes the rest.
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
