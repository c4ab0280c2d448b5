/** Decides what the key of a request opens, by the keys that this replica has seen. */
import { hash } from 'node:crypto'
import type { LRUCache } from 'lru-cache'
import { isWellFormedKey, KEY_LENGTH, type KeyAccess, type KeyVerdict } from './key.ts'
import { type CheckedKey, KeyChecks, UNAVAILABLE, UNKNOWN, writeUses } from './key-lookups.ts'

interface KeyringOptions extends KeyAccess {
  onError?: (error: unknown) => void
  now?: () => number
  monotonic?: () => number
  maxKeys?: number
  retryMs?: number
}

// Ages in milliseconds, counted from the moment before the lookup. The cache's own time to live would begin after it.
// At FRESH_MS a key is checked again in the background; from STALE_MS on, callers wait for that check. A revoked key thus
// stops everywhere within 5 s, of which the last second is for the check.
const FRESH_MS = 2_000
const STALE_MS = 4_000
// How long a key works while the store is away. No revocation can reach it meanwhile.
const OUTAGE_MS = 15 * 60_000

class Keyring {
  readonly #now: () => number
  readonly #monotonic: () => number
  readonly #maxKeys: number
  readonly #checks: KeyChecks
  readonly #known: LRUCache<string, CheckedKey>
  /** When keys were used, in milliseconds since the epoch, since the last write. */
  readonly #uses = new Map<string, number>()
  readonly #closeUses: () => Promise<void>

  constructor(options: Required<KeyringOptions>) {
    this.#now = options.now
    this.#monotonic = options.monotonic
    this.#maxKeys = options.maxKeys
    this.#checks = new KeyChecks(options)
    this.#known = this.#checks.known
    this.#closeUses = writeUses(this.#uses, options)
  }

  /** Returns what a key opens. Never rejects. A key that was checked a moment ago costs a hash and two accesses to a map. */
  find(key: string | undefined): Promise<KeyVerdict> {
    if (key?.length !== KEY_LENGTH) return UNKNOWN
    const id = keyHash(key)
    const entry = this.#known.get(id)
    if (entry === undefined) return isWellFormedKey(key) ? this.#findNew(id) : UNKNOWN
    const age = this.#monotonic() - entry.checkedAt
    if (age < FRESH_MS || this.#checks.failing) return this.#verdictOf(id, entry)
    const checked = this.#known.fetch(id, { forceRefresh: true, allowStale: age < STALE_MS })
    return checked.then((latest = entry) => this.#verdictOf(id, latest))
  }

  /** Stops the timers and writes the last uses. */
  close(): Promise<void> {
    this.#checks.close()
    return this.#closeUses()
  }

  async #findNew(id: string): Promise<KeyVerdict> {
    const entry = await this.#checks.checkNew(id)
    return entry === undefined ? UNAVAILABLE : this.#verdictOf(id, entry)
  }

  #verdictOf(id: string, { verdict, expiresAt, checkedAt }: CheckedKey): Promise<KeyVerdict> {
    const now = this.#now()
    if (expiresAt <= now) return UNKNOWN
    if (this.#monotonic() - checkedAt >= OUTAGE_MS) return UNAVAILABLE
    // Beyond so many keys between two writes, further ones are not noted.
    if (this.#uses.size < this.#maxKeys || this.#uses.has(id)) this.#uses.set(id, now)
    return verdict
  }
}

export type { Keyring }

/**
 * Creates a keyring. `now` (milliseconds since the epoch) decides whether a key has expired, `monotonic` (milliseconds
 * that never jump) how old a check is. `onError` gets the store's failures, which no caller sees.
 */
export function createKeyring(options: KeyringOptions): Keyring {
  return new Keyring({
    onError: () => {},
    now: Date.now,
    monotonic: () => performance.now(),
    maxKeys: 10_000,
    retryMs: 1_000,
    ...options,
  })
}

/** Returns a key's id: its SHA-256 in hexadecimal. 178 random bits need no salt, and an id without one can be looked up. */
export function keyHash(key: string): string {
  return hash('sha256', key)
}
