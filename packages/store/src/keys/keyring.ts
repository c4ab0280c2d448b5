/** Decides which rights the key of a request has, by the keys that this replica has checked. */
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { isWellFormedKey, KEY_LENGTH, type KeyAccess, type KeyCheck, type KeyRecord, type KnownKey } from './key.ts'
import { createKeyLookups } from './key-lookups.ts'
import { writeUses } from './key-uses.ts'

interface KeyringOptions extends KeyAccess {
  onError?: (error: unknown) => void
  now?: () => number
  monotonic?: () => number
  maxKeys?: number
  retryMs?: number
}

// The age of a check at which the key is checked again in the background, and at which callers wait for that check:
// while MongoDB answers, a revoked key stops everywhere within 4 s.
const FRESH_MS = 2_000
const STALE_MS = 4_000
// The age at which a key stops while MongoDB is away: no revocation can reach the replica meanwhile.
const OUTAGE_MS = 15 * 60_000
// The time for which an unknown key is remembered.
const UNKNOWN_MS = 4_000
// Further new keys are unavailable while this number of lookups waits.
const MAX_NEW_KEYS = 1_000

/** The result of a check. `known` is absent if the key was unknown, expired or revoked at `checkedAt`. */
interface CheckedKey {
  readonly known?: KnownKey
  readonly expiresAt: number
  readonly checkedAt: number
}

export type Keyring = ReturnType<typeof createKeyring>

/** Creates a keyring. `onError` receives the failures of MongoDB, which no caller sees. */
export function createKeyring({
  findKeys,
  touchKeys,
  onError = () => {},
  now = Date.now,
  monotonic = () => performance.now(),
  maxKeys = 10_000,
  retryMs = 1_000,
}: KeyringOptions) {
  const lookUp = createKeyLookups({ findKeys, onError, monotonic, retryMs })
  const check = async (id: string, maxWaiting?: number): Promise<CheckedKey> => {
    // The moment before the lookup: its result may miss a revocation during the lookup.
    const checkedAt = monotonic()
    const record = await lookUp(id, maxWaiting)
    if (record === undefined || !isLive(record, now())) return { expiresAt: 0, checkedAt }
    const { role, tenant, limits, expiresAt } = record
    const known: KnownKey = { outcome: 'known', keyId: shortKeyId(id), role, tenant, ...(limits && { limits }) }
    return { known, expiresAt: expiresAt?.getTime() ?? Number.POSITIVE_INFINITY, checkedAt }
  }

  // Callers that wait for a check get its result also if the key was evicted meanwhile.
  const bounds = { max: maxKeys, ignoreFetchAbort: true }
  // Keys that were known once. If a check fails, the result of the check before it stays.
  const known = new LRUCache<string, CheckedKey>({
    ...bounds,
    allowStaleOnFetchRejection: true,
    fetchMethod: (id) => check(id),
  })
  // A cache of their own, so that guesses evict no known key.
  const unknown = new LRUCache<string, CheckedKey>({ ...bounds, fetchMethod: (id) => check(id, MAX_NEW_KEYS) })
  const ageOf = (checked: CheckedKey | undefined) => monotonic() - (checked?.checkedAt ?? Number.NEGATIVE_INFINITY)

  function findKnown(id: string): Promise<CheckedKey | undefined> {
    const age = ageOf(known.get(id))
    return known.fetch(id, { forceRefresh: age >= FRESH_MS, allowStale: age < STALE_MS })
  }

  async function findNew(id: string): Promise<CheckedKey | undefined> {
    const forceRefresh = ageOf(unknown.get(id)) >= UNKNOWN_MS
    const checked = await unknown.fetch(id, { forceRefresh }).catch(() => undefined)
    if (checked?.known !== undefined) known.set(id, checked)
    return checked
  }

  /** When keys were used, in milliseconds since the epoch, since the last write. */
  const uses = new Map<string, number>()
  const close = writeUses(uses, { touchKeys, onError })

  return {
    /** Returns the result of checking the key of a request. Never rejects. */
    async find(key: string | undefined): Promise<KeyCheck> {
      if (key?.length !== KEY_LENGTH) return { outcome: 'unknown' }
      const id = keyHash(key)
      const isKnown = known.has(id)
      if (!isKnown && !isWellFormedKey(key)) return { outcome: 'unknown' }
      const checked = await (isKnown ? findKnown(id) : findNew(id))
      if (checked === undefined) return { outcome: 'unavailable' }
      if (checked.known === undefined || checked.expiresAt <= now()) return { outcome: 'unknown' }
      if (ageOf(checked) >= OUTAGE_MS) return { outcome: 'unavailable' }
      if (uses.size < maxKeys || uses.has(id)) uses.set(id, now())
      return checked.known
    },

    /** Ends the timer and writes the last uses. */
    close,
  }
}

/**
 * Returns a key's id: its SHA-256 in hexadecimal. 178 random bits need no salt, and an id without one can be looked up.
 */
export function keyHash(key: string): string {
  return hash('sha256', key)
}

/** Returns whether a key is neither revoked nor expired at `now` (ms since 1970). */
export function isLive({ expiresAt, revokedAt }: Pick<KeyRecord, 'expiresAt' | 'revokedAt'>, now: number): boolean {
  return revokedAt === undefined && (expiresAt === undefined || expiresAt.getTime() > now)
}

/** Returns the beginning of a key's id, which distinguishes keys in commands and logs. */
export function shortKeyId(id: string): string {
  return id.slice(0, 12)
}
