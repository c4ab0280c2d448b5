/** Decides which rights the key of a request has, by the keys that this replica has checked. */
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { isWellFormedKey, KEY_LENGTH, type KeyAccess, type KeyCheck } from './key.ts'
import { type CheckedKey, createKeyChecks } from './key-lookups.ts'
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
  const { check, checkNew } = createKeyChecks({ findKeys, onError, now, monotonic, maxKeys, retryMs })
  // Keys that were known once. If a check fails, the result of the check before it stays.
  const known = new LRUCache<string, CheckedKey>({
    max: maxKeys,
    allowStaleOnFetchRejection: true,
    // Callers that wait for a check get its result also if the key was evicted meanwhile.
    ignoreFetchAbort: true,
    fetchMethod: (id) => check(id),
  })
  const ageOf = (checked: CheckedKey | undefined) => monotonic() - (checked?.checkedAt ?? Number.NEGATIVE_INFINITY)

  function findKnown(id: string): Promise<CheckedKey | undefined> {
    const age = ageOf(known.get(id))
    return known.fetch(id, { forceRefresh: age >= FRESH_MS, allowStale: age < STALE_MS })
  }

  /** When keys were used, in milliseconds since the epoch, since the last write. */
  const uses = new Map<string, number>()
  const close = writeUses(uses, { touchKeys, onError })

  const keyring = {
    /** Returns the result of checking the key of a request. Never rejects. */
    async find(key: string | undefined): Promise<KeyCheck> {
      if (key?.length !== KEY_LENGTH) return { outcome: 'unknown' }
      const id = keyHash(key)
      return known.has(id) || isWellFormedKey(key) ? keyring.findById(id) : { outcome: 'unknown' }
    },

    /** Returns the result of checking the key of an id, which was checked before. Never rejects. */
    async findById(id: string): Promise<KeyCheck> {
      const isKnown = known.has(id)
      const checked = await (isKnown ? findKnown(id) : checkNew(id))
      if (checked === undefined) return { outcome: 'unavailable' }
      if (!isKnown && checked.known !== undefined) known.set(id, checked)
      if (checked.known === undefined || checked.expiresAt <= now()) return { outcome: 'unknown' }
      if (ageOf(checked) >= OUTAGE_MS) return { outcome: 'unavailable' }
      if (uses.size < maxKeys || uses.has(id)) uses.set(id, now())
      return checked.known
    },

    /** Ends the timer and writes the last uses. */
    close,
  }
  return keyring
}

/**
 * Returns a key's id: its SHA-256 in hexadecimal. 178 random bits need no salt, and an id without one can be looked up.
 */
export function keyHash(key: string): string {
  return hash('sha256', key)
}
