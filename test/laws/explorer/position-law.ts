import assert from 'node:assert/strict'
import type { expectedThreads } from '../support/oracle.ts'
import type { MemoryDatabase } from './memory-database.ts'

// The law of positions: in the end each quote's position is the smallest that an accepted request gave it. On the way it only gets smaller, and is never lost.

/** Watches the positions of one history's quotes. */
export class PositionLaw {
  readonly #database: MemoryDatabase
  readonly #hasRepairs: boolean
  readonly #positions = new Map<string, string>()
  readonly #seen = new Set<string>()
  /** Quotes that an old process inserted. */
  readonly #insertedWithout = new Set<string>()

  constructor(database: MemoryDatabase, hasRepairs: boolean) {
    this.#database = database
    this.#hasRepairs = hasRepairs
  }

  /** Holds after every write. */
  assertKept(): void {
    for (const { _id, position } of this.#database.all('quotes')) {
      const before = this.#positions.get(_id)
      if (before !== undefined) assert(position !== undefined && position <= before, `${_id} lost its place ${before}`)
      if (position !== undefined) this.#positions.set(_id, position)
      else if (!this.#seen.has(_id)) this.#insertedWithout.add(_id)
      this.#seen.add(_id)
    }
  }

  /** Only a repair gives a position to a quote that was stored without one. */
  assertOnlyRepairsFill(): void {
    if (this.#hasRepairs) return
    for (const id of this.#insertedWithout) assert(!this.#positions.has(id), `${id} got a position without a repair`)
  }

  /** Returns the stored quotes without a position. */
  missing(): string[] {
    const quotes = this.#database.all('quotes')
    return quotes.filter(({ position }) => position === undefined).map(({ _id }) => _id)
  }

  /** Holds at the end of a repair, for the quotes that had no position when it began. */
  assertFilled(before: readonly string[]): void {
    const left = new Set(this.missing())
    for (const id of before) assert(!left.has(id), `a repair left ${id} without a position`)
  }

  /** Returns the threads without those positions that no request determines. */
  determined(threads: ReturnType<typeof expectedThreads>): typeof threads {
    if (this.#insertedWithout.size === 0) return threads
    return new Map(
      [...threads].map(([id, thread]) => {
        const quotes = Object.entries(thread.quotes).map(([quoteId, { position, ...quote }]) => {
          return [quoteId, this.#insertedWithout.has(quoteId) ? quote : { ...quote, position }] as const
        })
        return [id, { ...thread, quotes: Object.fromEntries(quotes) }]
      }),
    )
  }
}
