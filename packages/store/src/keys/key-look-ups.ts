import type { KeyAccess } from './key-access.ts'
import type { KeyRecord } from './key-record.ts'

/** What a look-up told: the record as it was at `askedAt` or later, if there was one; or that the store did not answer. */
export type LookUp = { readonly record: KeyRecord | undefined; readonly askedAt: number } | 'failed'

interface LookUpOptions extends Pick<KeyAccess, 'findKeys'> {
  monotonic: () => number
  onError: (error: unknown) => void
  perQuery?: number
  maxWaiting?: number
  retryMs?: number
}

interface Waiting {
  readonly id: string
  readonly resolve: (lookUp: LookUp) => void
}

const FAILED = Promise.resolve<LookUp>('failed')

/**
 * Gathers look-ups into queries of at most `perQuery` ids, one query at a time, so that a flood of guesses is one
 * caller to the store. After a failure nobody waits for the store: it is asked again every `retryMs` in the background,
 * and look-ups fail at once until it answers. No promise rejects. `monotonic` gives milliseconds that never jump.
 */
export class KeyLookUps {
  readonly #options: Required<LookUpOptions>
  readonly #pending = new Map<string, Promise<LookUp>>()
  readonly #refreshes: Waiting[] = []
  readonly #newcomers: Waiting[] = []
  #asking = false
  #failing = false
  #closed = false
  #retry: NodeJS.Timeout | undefined

  constructor(options: LookUpOptions) {
    this.#options = { perQuery: 200, maxWaiting: 10_000, retryMs: 1_000, ...options }
  }

  /** Whether the store failed the last time that it was asked. */
  get failing(): boolean {
    return this.#failing
  }

  /** Looks up a key that was good before; goes ahead of all that were never seen. */
  refresh(id: string): Promise<LookUp> {
    return this.#pending.get(id) ?? (this.#failing ? FAILED : this.#join(this.#refreshes, id))
  }

  /** Looks up a key that was never seen; fails where too many of them wait already. */
  lookUp(id: string): Promise<LookUp> {
    const refused = this.#failing || this.#newcomers.length >= this.#options.maxWaiting
    return this.#pending.get(id) ?? (refused ? FAILED : this.#join(this.#newcomers, id))
  }

  /** Stops asking a store that is away. */
  close(): void {
    this.#closed = true
    clearTimeout(this.#retry)
  }

  #join(queue: Waiting[], id: string): Promise<LookUp> {
    const { promise, resolve } = Promise.withResolvers<LookUp>()
    this.#pending.set(id, promise)
    queue.push({ id, resolve })
    if (!this.#asking) void this.#askForAll()
    return promise
  }

  async #askForAll(): Promise<void> {
    this.#asking = true
    for (let batch = this.#nextBatch(); batch.length > 0; batch = this.#nextBatch()) await this.#askFor(batch)
    this.#asking = false
  }

  #nextBatch(): Waiting[] {
    const { perQuery } = this.#options
    const first = this.#refreshes.splice(0, perQuery)
    return first.concat(this.#newcomers.splice(0, perQuery - first.length))
  }

  async #askFor(batch: readonly Waiting[]): Promise<void> {
    // The moment before the query: what is revoked while it runs may be missing from its answer.
    const askedAt = this.#options.monotonic()
    try {
      const found = await this.#options.findKeys(batch.map(({ id }) => id))
      const records = new Map(found.map((record) => [record.id, record]))
      for (const waiting of batch) this.#settle(waiting, { record: records.get(waiting.id), askedAt })
    } catch (error) {
      this.#fail(error, batch)
    }
  }

  #settle({ id, resolve }: Waiting, lookUp: LookUp): void {
    this.#pending.delete(id)
    resolve(lookUp)
  }

  #fail(error: unknown, batch: readonly Waiting[]): void {
    this.#options.onError(error)
    this.#failing = true
    const all = [...batch, ...this.#refreshes.splice(0), ...this.#newcomers.splice(0)]
    for (const waiting of all) this.#settle(waiting, 'failed')
    this.#retryLater()
  }

  #retryLater(): void {
    if (!this.#closed) this.#retry = setTimeout(() => void this.#probe(), this.#options.retryMs).unref()
  }

  /** A query for nothing: it shows that the store answers, and costs it next to nothing. */
  async #probe(): Promise<void> {
    try {
      await this.#options.findKeys([])
      this.#failing = false
    } catch {
      this.#retryLater()
    }
  }
}
