/** Asks the store about keys in few queries, lets nobody wait for a store that is failing, and tells the store when keys were used. */
import { LRUCache } from 'lru-cache'
import { isLive, type KeyAccess, type KeyRecord, type KeyVerdict, type KnownKey, shortKeyId } from './key.ts'

export const UNKNOWN = Promise.resolve<KeyVerdict>({ outcome: 'unknown' })
export const UNAVAILABLE = Promise.resolve<KeyVerdict>({ outcome: 'unavailable' })

/** The result of a check, as it was at `checkedAt` or later. An unknown key has expired. */
export interface CheckedKey {
  readonly verdict: Promise<KeyVerdict>
  readonly expiresAt: number
  readonly checkedAt: number
}

interface CheckOptions extends Pick<KeyAccess, 'findKeys'> {
  now: () => number
  monotonic: () => number
  onError: (error: unknown) => void
  maxKeys: number
  retryMs: number
}

/** In milliseconds. */
const UNKNOWN_MS = 4_000

/** Checks keys. Known and unknown ones have a cache each, so that guesses evict no good key. The caches hold only hashes of keys. */
export class KeyChecks {
  /** A fetch checks a key again. A revoked key stays with the verdict UNKNOWN. */
  readonly known: LRUCache<string, CheckedKey>
  readonly #unknown: LRUCache<string, number>
  readonly #lookups: KeyLookups
  readonly #options: CheckOptions

  constructor(options: CheckOptions) {
    const { maxKeys: max, findKeys, monotonic, onError, retryMs } = options
    // An eviction aborts the check of a key. `ignoreFetchAbort` lets callers that wait for it have its result.
    this.known = new LRUCache({ max, ignoreFetchAbort: true, fetchMethod: (id) => this.#checkAgain(id) })
    this.#unknown = new LRUCache({ max })
    this.#lookups = new KeyLookups({ findKeys, monotonic, onError, retryMs })
    this.#options = options
  }

  /** Whether the store failed at the last query. */
  get failing(): boolean {
    return this.#lookups.failing
  }

  /** Checks a key that is not in `known`. Undefined if the store does not answer. */
  async checkNew(id: string): Promise<CheckedKey | undefined> {
    const missedAt = this.#unknown.get(id)
    if (missedAt !== undefined && this.#options.monotonic() - missedAt < UNKNOWN_MS) return unknownAt(missedAt)
    const lookup = await this.#lookups.lookUp(id)
    if (lookup === 'failed') return undefined
    const entry = this.#entryOf(lookup)
    if (entry.verdict === UNKNOWN) this.#unknown.set(id, entry.checkedAt)
    else this.known.set(id, entry)
    return entry
  }

  /** Stops probing a store that is away. */
  close(): void {
    this.#lookups.close()
  }

  /** If the store does not answer, this returns undefined and the cache keeps the entry that it has. */
  async #checkAgain(id: string): Promise<CheckedKey | undefined> {
    const lookup = await this.#lookups.refresh(id)
    return lookup === 'failed' ? undefined : this.#entryOf(lookup)
  }

  #entryOf({ record, askedAt }: Exclude<Lookup, 'failed'>): CheckedKey {
    if (record === undefined || !isLive(record, this.#options.now())) return unknownAt(askedAt)
    const { id, role, tenant, limits, expiresAt } = record
    const known: KnownKey = { outcome: 'known', keyId: shortKeyId(id), role, tenant, ...(limits && { limits }) }
    const verdict = Promise.resolve(known)
    return { verdict, expiresAt: expiresAt?.getTime() ?? Number.POSITIVE_INFINITY, checkedAt: askedAt }
  }
}

function unknownAt(checkedAt: number): CheckedKey {
  return { verdict: UNKNOWN, expiresAt: 0, checkedAt }
}

/** The result of a lookup: the record, if one exists, as it was at `askedAt` or later; or that the store did not answer. */
export type Lookup = { readonly record: KeyRecord | undefined; readonly askedAt: number } | 'failed'

interface LookupOptions extends Pick<KeyAccess, 'findKeys'> {
  monotonic: () => number
  onError: (error: unknown) => void
  perQuery?: number
  maxWaiting?: number
  retryMs?: number
}

interface Waiting {
  readonly id: string
  readonly resolve: (lookup: Lookup) => void
}

const FAILED = Promise.resolve<Lookup>('failed')

/**
 * Looks keys up in queries of at most `perQuery` ids, one query at a time, so that a flood of guesses loads the store no
 * more than one caller does. After a failure, lookups fail at once; a probe every `retryMs` finds out when the store
 * answers again. At most `maxWaiting` keys that were never seen wait. No promise rejects. `monotonic` returns
 * milliseconds that never jump.
 */
export class KeyLookups {
  readonly #options: Required<LookupOptions>
  readonly #pending = new Map<string, Promise<Lookup>>()
  readonly #refreshes: Waiting[] = []
  readonly #newcomers: Waiting[] = []
  #querying = false
  #failing = false
  #closed = false
  #retry: NodeJS.Timeout | undefined

  constructor(options: LookupOptions) {
    this.#options = { perQuery: 200, maxWaiting: 10_000, retryMs: 1_000, ...options }
  }

  /** Whether the store failed at the last query. */
  get failing(): boolean {
    return this.#failing
  }

  /** Looks up a key that was good before. It goes ahead of all keys that were never seen. */
  refresh(id: string): Promise<Lookup> {
    return this.#pending.get(id) ?? (this.#failing ? FAILED : this.#join(this.#refreshes, id))
  }

  /** Looks up a key that was never seen. Fails if too many such keys are waiting. */
  lookUp(id: string): Promise<Lookup> {
    const refused = this.#failing || this.#newcomers.length >= this.#options.maxWaiting
    return this.#pending.get(id) ?? (refused ? FAILED : this.#join(this.#newcomers, id))
  }

  /** Stops probing a store that is away. */
  close(): void {
    this.#closed = true
    clearTimeout(this.#retry)
  }

  #join(queue: Waiting[], id: string): Promise<Lookup> {
    const { promise, resolve } = Promise.withResolvers<Lookup>()
    this.#pending.set(id, promise)
    queue.push({ id, resolve })
    if (!this.#querying) void this.#queryAll()
    return promise
  }

  async #queryAll(): Promise<void> {
    this.#querying = true
    for (let group = this.#nextGroup(); group.length > 0; group = this.#nextGroup()) await this.#query(group)
    this.#querying = false
  }

  #nextGroup(): Waiting[] {
    const { perQuery } = this.#options
    const first = this.#refreshes.splice(0, perQuery)
    return first.concat(this.#newcomers.splice(0, perQuery - first.length))
  }

  async #query(group: readonly Waiting[]): Promise<void> {
    // The moment before the query: its result may miss a revocation that happens while it runs.
    const askedAt = this.#options.monotonic()
    try {
      const found = await this.#options.findKeys(group.map(({ id }) => id))
      const records = new Map(found.map((record) => [record.id, record]))
      for (const waiting of group) this.#settle(waiting, { record: records.get(waiting.id), askedAt })
    } catch (error) {
      this.#fail(error, group)
    }
  }

  #settle({ id, resolve }: Waiting, lookup: Lookup): void {
    this.#pending.delete(id)
    resolve(lookup)
  }

  #fail(error: unknown, group: readonly Waiting[]): void {
    this.#options.onError(error)
    this.#failing = true
    const all = [...group, ...this.#refreshes.splice(0), ...this.#newcomers.splice(0)]
    for (const waiting of all) this.#settle(waiting, 'failed')
    this.#probeLater()
  }

  #probeLater(): void {
    if (!this.#closed) this.#retry = setTimeout(() => void this.#probe(), this.#options.retryMs).unref()
  }

  /** Sends a query for no ids: it shows that the store answers, and costs it next to nothing. */
  async #probe(): Promise<void> {
    try {
      await this.#options.findKeys([])
      this.#failing = false
    } catch {
      this.#probeLater()
    }
  }
}

/**
 * Writes the last use of each key every `everyMs`, all keys together, and empties `uses`. Those that could not be written
 * are written with the next, as far as `maxKeys` allows. Returns a function that stops the timer and writes what is left.
 */
export function writeUses(
  uses: Map<string, number>,
  {
    touchKeys,
    onError,
    maxKeys,
    everyMs = 60_000,
  }: Pick<KeyAccess, 'touchKeys'> & { onError: (error: unknown) => void; maxKeys: number; everyMs?: number },
): () => Promise<void> {
  let flushed = Promise.resolve()

  async function flush(): Promise<void> {
    if (uses.size === 0) return
    const written = Array.from(uses)
    uses.clear()
    try {
      await touchKeys(new Map(written.map(([id, at]) => [id, new Date(at)])))
    } catch (error) {
      onError(error)
      for (const [id, at] of written) if (uses.size < maxKeys && !uses.has(id)) uses.set(id, at)
    }
  }

  /** Flushes one after the other, so that a slow store never has two flushes at once. */
  function flushNext(): Promise<void> {
    flushed = flushed.then(flush)
    return flushed
  }

  const timer = setInterval(flushNext, everyMs).unref()
  return () => {
    clearInterval(timer)
    return flushNext()
  }
}
