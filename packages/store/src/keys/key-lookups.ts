/** Gathers lookups of keys into few queries, and lets nobody wait for a store that is failing. */
import type { KeyAccess, KeyRecord } from './key.ts'

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
