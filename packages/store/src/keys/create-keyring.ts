import { LRUCache } from 'lru-cache'
import type { KeyAccess } from './key-access.ts'
import { KeyLookUps, type LookUp } from './key-look-ups.ts'
import { isLive, type KeyRecord } from './key-record.ts'
import { isWellFormedKey, keyHash } from './key-text.ts'
import { createKeyUses, type KeyUses } from './key-uses.ts'

/** What a key opens: a tenant's data, nothing, or that this can't be told now because the store is away. */
export type KeyVerdict =
  | { readonly outcome: 'known'; readonly keyId: string; readonly tenant: string; readonly name: string }
  | { readonly outcome: 'unknown' }
  | { readonly outcome: 'unavailable' }

interface Entry {
  readonly verdict: Promise<KeyVerdict>
  readonly expiresAt: number
  readonly checkedAt: number
}

// Ages in milliseconds, counted from the moment before the look-up. A revoked key stops everywhere within five seconds:
// no later than STALE_MS, and what is left is for the look-up that is then waited for.
const FRESH_MS = 2_000
const STALE_MS = 4_000
const UNKNOWN_MS = 4_000
// How long a key goes on working while the store is away, where no revocation can reach it.
const OUTAGE_MS = 15 * 60_000

const UNKNOWN = Promise.resolve<KeyVerdict>({ outcome: 'unknown' })
const UNAVAILABLE = Promise.resolve<KeyVerdict>({ outcome: 'unavailable' })

interface KeyringOptions extends KeyAccess {
  onError?: (error: unknown) => void
  now?: () => number
  monotonic?: () => number
  maxKeys?: number
  retryMs?: number
}

/**
 * The keys that one replica has seen. Good keys and bad ones are remembered apart, so that guesses drive no good key
 * out; only hashes are kept.
 */
class Keyring {
  readonly #now: () => number
  readonly #monotonic: () => number
  readonly #known: LRUCache<string, Entry>
  readonly #unknown: LRUCache<string, number>
  readonly #lookUps: KeyLookUps
  readonly #uses: KeyUses

  constructor({ findKeys, touchKeys, onError, now, monotonic, maxKeys, retryMs }: Required<KeyringOptions>) {
    this.#now = now
    this.#monotonic = monotonic
    this.#known = new LRUCache({ max: maxKeys })
    this.#unknown = new LRUCache({ max: maxKeys })
    this.#lookUps = new KeyLookUps({ findKeys, monotonic, onError, retryMs })
    this.#uses = createKeyUses({ touchKeys, onError, maxKeys })
  }

  /** What a key opens; never rejects. One that was checked a moment ago costs a hash and a look into a map. */
  find(key: string | undefined): Promise<KeyVerdict> {
    if (key === undefined || !isWellFormedKey(key)) return UNKNOWN
    const id = keyHash(key)
    const entry = this.#known.get(id)
    return entry === undefined ? this.#findNew(id) : this.#findAgain(id, entry)
  }

  /** Stops the timers and writes the last uses. */
  close(): Promise<void> {
    this.#lookUps.close()
    return this.#uses.close()
  }

  #findAgain(id: string, entry: Entry): Promise<KeyVerdict> {
    const age = this.#monotonic() - entry.checkedAt
    if (age < FRESH_MS || this.#lookUps.failing) return this.#remembered(id, entry)
    const refreshed = this.#lookUps.refresh(id).then((lookUp) => this.#learn(id, lookUp, entry))
    return age < STALE_MS ? this.#remembered(id, entry) : refreshed
  }

  #findNew(id: string): Promise<KeyVerdict> {
    const missedAt = this.#unknown.get(id)
    if (missedAt !== undefined && this.#monotonic() - missedAt < UNKNOWN_MS) return UNKNOWN
    return this.#lookUps.lookUp(id).then((lookUp) => this.#learn(id, lookUp))
  }

  #remembered(id: string, entry: Entry): Promise<KeyVerdict> {
    const now = this.#now()
    if (entry.expiresAt <= now) return UNKNOWN
    if (this.#monotonic() - entry.checkedAt >= OUTAGE_MS) return UNAVAILABLE
    this.#uses.note(id, now)
    return entry.verdict
  }

  #learn(id: string, lookUp: LookUp, before?: Entry): Promise<KeyVerdict> {
    if (lookUp === 'failed') return before === undefined ? UNAVAILABLE : this.#remembered(id, before)
    const { record, askedAt } = lookUp
    if (record === undefined || !isLive(record, this.#now())) {
      this.#known.delete(id)
      this.#unknown.set(id, askedAt)
      return UNKNOWN
    }
    const entry = toEntry(record, askedAt)
    this.#known.set(id, entry)
    return this.#remembered(id, entry)
  }
}

export type { Keyring }

/**
 * A keyring before a store of keys. `now` (milliseconds since the epoch) decides what has expired, `monotonic`
 * (milliseconds that never jump) how fresh a check is. `onError` hears of the store's failures, which no caller sees.
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

function toEntry({ id, tenant, name, expiresAt }: KeyRecord, checkedAt: number): Entry {
  return {
    verdict: Promise.resolve({ outcome: 'known', keyId: id, tenant, name }),
    expiresAt: expiresAt?.getTime() ?? Number.POSITIVE_INFINITY,
    checkedAt,
  }
}
