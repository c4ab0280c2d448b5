/** Decides what the key of a request opens. Remembers the keys that this replica has seen, and when they were used. */
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { isLive, isWellFormedKey, KEY_LENGTH, type KeyAccess, type KeyLimits, type KeyRole, shortKeyId } from './key.ts'
import { KeyLookups, type Lookup } from './key-lookups.ts'

/** A key that works. */
export interface KnownKey {
  readonly outcome: 'known'
  /** The beginning of the key's id, which is a hash: nobody can derive the key from it. */
  readonly keyId: string
  readonly role: KeyRole
  /** '' for an operator. */
  readonly tenant: string
  /** Absent: the limits of all keys apply. */
  readonly limits?: KeyLimits
}

/** The verdict on a key: the rights of its role, nothing, or undecided because the store is away. */
export type KeyVerdict = KnownKey | { readonly outcome: 'unknown' } | { readonly outcome: 'unavailable' }

interface Entry {
  readonly verdict: Promise<KeyVerdict>
  readonly expiresAt: number
  readonly checkedAt: number
}

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
const UNKNOWN_MS = 4_000
// How long a key works while the store is away. No revocation can reach it meanwhile.
const OUTAGE_MS = 15 * 60_000

const UNKNOWN = Promise.resolve<KeyVerdict>({ outcome: 'unknown' })
const UNAVAILABLE = Promise.resolve<KeyVerdict>({ outcome: 'unavailable' })

/** Known and unknown keys have a cache each, so that guesses evict no good key. The caches hold only hashes of keys. */
class Keyring {
  readonly #now: () => number
  readonly #monotonic: () => number
  readonly #known: LRUCache<string, Entry>
  readonly #unknown: LRUCache<string, number>
  readonly #lookups: KeyLookups
  readonly #uses: KeyUses

  constructor({ findKeys, touchKeys, onError, now, monotonic, maxKeys, retryMs }: Required<KeyringOptions>) {
    this.#now = now
    this.#monotonic = monotonic
    // An eviction aborts the check of a key. `ignoreFetchAbort` lets callers that wait for it have its result.
    this.#known = new LRUCache({ max: maxKeys, ignoreFetchAbort: true, fetchMethod: (id) => this.#check(id) })
    this.#unknown = new LRUCache({ max: maxKeys })
    this.#lookups = new KeyLookups({ findKeys, monotonic, onError, retryMs })
    this.#uses = createKeyUses({ touchKeys, onError, maxKeys })
  }

  /** Returns what a key opens. Never rejects. A key that was checked a moment ago costs a hash and one access to a map. */
  find(key: string | undefined): Promise<KeyVerdict> {
    if (key?.length !== KEY_LENGTH) return UNKNOWN
    const id = keyHash(key)
    const entry = this.#known.get(id)
    if (entry !== undefined) return this.#findKnown(id, entry)
    return isWellFormedKey(key) ? this.#findNew(id) : UNKNOWN
  }

  /** Stops the timers and writes the last uses. */
  close(): Promise<void> {
    this.#lookups.close()
    return this.#uses.close()
  }

  #findKnown(id: string, entry: Entry): Promise<KeyVerdict> {
    const age = this.#monotonic() - entry.checkedAt
    if (age < FRESH_MS || this.#lookups.failing) return this.#verdictOf(id, entry)
    const checked = this.#known.fetch(id, { forceRefresh: true, allowStale: age < STALE_MS })
    return checked.then((latest = entry) => this.#verdictOf(id, latest))
  }

  async #findNew(id: string): Promise<KeyVerdict> {
    const missedAt = this.#unknown.get(id)
    if (missedAt !== undefined && this.#monotonic() - missedAt < UNKNOWN_MS) return UNKNOWN
    const lookup = await this.#lookups.lookUp(id)
    if (lookup === 'failed') return UNAVAILABLE
    const entry = this.#entryOf(lookup)
    if (entry.verdict === UNKNOWN) this.#unknown.set(id, entry.checkedAt)
    else this.#known.set(id, entry)
    return this.#verdictOf(id, entry)
  }

  /**
   * Checks a known key again. A revoked key stays in the cache with the verdict UNKNOWN. If the store does not answer,
   * this returns undefined and the cache keeps the entry that it has.
   */
  async #check(id: string): Promise<Entry | undefined> {
    const lookup = await this.#lookups.refresh(id)
    return lookup === 'failed' ? undefined : this.#entryOf(lookup)
  }

  #entryOf({ record, askedAt }: Exclude<Lookup, 'failed'>): Entry {
    if (record === undefined || !isLive(record, this.#now()))
      return { verdict: UNKNOWN, expiresAt: 0, checkedAt: askedAt }
    const { id, role, tenant, limits, expiresAt } = record
    const known: KnownKey = { outcome: 'known', keyId: shortKeyId(id), role, tenant, ...(limits && { limits }) }
    const verdict = Promise.resolve(known)
    return { verdict, expiresAt: expiresAt?.getTime() ?? Number.POSITIVE_INFINITY, checkedAt: askedAt }
  }

  #verdictOf(id: string, entry: Entry): Promise<KeyVerdict> {
    const now = this.#now()
    if (entry.expiresAt <= now) return UNKNOWN
    if (this.#monotonic() - entry.checkedAt >= OUTAGE_MS) return UNAVAILABLE
    this.#uses.note(id, now)
    return entry.verdict
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

/** Gathers when keys were used. */
interface KeyUses {
  /** Notes a use at `at`, in milliseconds since the epoch. Costs no more than one access to a map. */
  note(id: string, at: number): void
  /** Stops the timer and writes all uses that are not yet written. */
  close(): Promise<void>
}

/**
 * Writes the last use of each key every `everyMs`, all keys together. Uses that could not be written are written with
 * the next. Beyond `maxKeys` keys in between, further ones are not noted.
 */
export function createKeyUses({
  touchKeys,
  onError,
  everyMs = 60_000,
  maxKeys = 10_000,
}: Pick<KeyAccess, 'touchKeys'> & {
  onError: (error: unknown) => void
  everyMs?: number
  maxKeys?: number
}): KeyUses {
  let uses = new Map<string, number>()
  let flushed = Promise.resolve()

  function note(id: string, at: number): void {
    if (uses.size < maxKeys || uses.has(id)) uses.set(id, at)
  }

  async function flush(): Promise<void> {
    if (uses.size === 0) return
    const written = uses
    uses = new Map()
    try {
      await touchKeys(new Map(Array.from(written, ([id, at]) => [id, new Date(at)])))
    } catch (error) {
      onError(error)
      for (const [id, at] of written) if (!uses.has(id)) note(id, at)
    }
  }

  /** Flushes one after the other, so that a slow store never has two flushes at once. */
  function flushNext(): Promise<void> {
    flushed = flushed.then(flush)
    return flushed
  }

  const timer = setInterval(flushNext, everyMs).unref()
  return {
    note,
    close: () => {
      clearInterval(timer)
      return flushNext()
    },
  }
}
