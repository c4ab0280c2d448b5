// Decides the rights of a request's key, by checks that this replica has made.
import { hash } from 'node:crypto'
import { isWellFormedKey, KEY_LENGTH, type KeyAccess, type KeyCheck } from './key.ts'
import { type CheckedKey, createCheckCaches, writeUses } from './key-lookups.ts'

interface KeyringOptions extends KeyAccess {
  onError?: (error: unknown) => void
  now?: () => number
  monotonic?: () => number
  maxKeys?: number
  retryMs?: number
}

// After FRESH_MS, a key is checked again in the background. After TRUSTED_MS, callers wait for that
// check. So a revoked key stops working everywhere within 4 s while MongoDB answers. An unknown key
// is checked again only after TRUSTED_MS.
const FRESH_MS = 2_000
const TRUSTED_MS = 4_000
// While MongoDB is unavailable, the replica can't learn of a revocation. A key then works until its
// last check is this old.
const OUTAGE_MS = 15 * 60_000

export type Keyring = ReturnType<typeof createKeyring>

/**
 * Creates a keyring.
 * @param options.onError is called with failures of MongoDB, which callers do not see.
 */
export function createKeyring({ findKeys, touchKeys, ...options }: KeyringOptions) {
  const { onError = () => {}, now = Date.now, monotonic = () => performance.now() } = options
  const { maxKeys = 10_000, retryMs = 1_000 } = options
  const { known, others } = createCheckCaches({
    findKeys,
    onError,
    now,
    monotonic,
    maxKeys,
    retryMs,
  })
  const ageOf = (checked: CheckedKey | undefined) =>
    monotonic() - (checked?.checkedAt ?? Number.NEGATIVE_INFINITY)
  /** The last uses that are not written yet: the time of use in ms since 1970, by the key's id. */
  const uses = new Map<string, number>()

  /** Returns the last check of a key, or makes one. Returns undefined if MongoDB is unavailable. */
  async function check(id: string): Promise<CheckedKey | undefined> {
    const [cache, freshMs] = known.has(id) ? [known, FRESH_MS] : [others, TRUSTED_MS]
    const age = ageOf(cache.get(id))
    const checked = await cache
      .fetch(id, { forceRefresh: age >= freshMs, allowStale: age < TRUSTED_MS })
      .catch(() => {})
    if (cache === others && checked?.known !== undefined) known.set(id, checked)
    return checked ?? undefined
  }

  const keyring = {
    /** Checks the key of a request. Never rejects. */
    async find(key: string | undefined): Promise<KeyCheck> {
      if (key?.length !== KEY_LENGTH) return { outcome: 'unknown' }
      const id = keyHash(key)
      return known.has(id) || isWellFormedKey(key) ? keyring.findById(id) : { outcome: 'unknown' }
    },

    /** Checks a key by its id. Never rejects. */
    async findById(id: string): Promise<KeyCheck> {
      const checked = await check(id)
      if (checked === undefined) return { outcome: 'unavailable' }
      const { known, refused = { outcome: 'unknown' }, expiresAt } = checked
      if (known === undefined) return refused
      const { keyId, tenant } = known
      if (expiresAt <= now()) return { outcome: 'unknown', keyId, tenant, why: 'expired' }
      if (ageOf(checked) >= OUTAGE_MS) return { outcome: 'unavailable' }
      if (uses.size < maxKeys || uses.has(id)) uses.set(id, now())
      return known
    },

    /** Stops the timer and writes the last uses. */
    close: writeUses(uses, { touchKeys, onError }),
  }
  return keyring
}

/**
 * Returns a key's id: its SHA-256 in hexadecimal. The key has 178 random bits, so no salt is
 * needed.
 */
export function keyHash(key: string): string {
  return hash('sha256', key)
}
