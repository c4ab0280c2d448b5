import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import {
  isLive,
  type PostRequest,
  type QuoteDocument,
  type SourceDocument,
  type StoredAnswer,
  type StoreRequest,
} from '@sluice/store'
import { sourceIdIn } from '@sluice/store/ids'
import type { MemoryDatabase } from './memory-database.ts'
import { deletedUpTo } from './position-law.ts'

// The law of outcomes: `created` exactly once for each document, and `unchanged` only if nothing of
// the request took effect.

type Stored = SourceDocument | QuoteDocument

/** Watches what the requests of one history do to documents, and what they are answered. */
export class OutcomeLaw {
  readonly #database: MemoryDatabase
  readonly #seen = new Map<string, Stored>()
  /** The documents that each request inserted or changed. */
  readonly #effects = new Map<string, Set<string>>()
  /** The requests that were answered `created`, by the document's id. */
  readonly #creators = new Map<string, Set<string>>()

  constructor(database: MemoryDatabase) {
    this.#database = database
  }

  /** Call after every write. */
  watch(): void {
    for (const document of this.#documents()) {
      const before = this.#seen.get(document._id)
      if (before === document) continue
      this.#seen.set(document._id, document)
      const { insertedBy, changedBy } = document.meta
      if (before?.meta.insertedBy !== insertedBy) this.#note(insertedBy, document)
      else if (
        before &&
        changedBy !== undefined &&
        !isDeepStrictEqual(valuesOf(before), valuesOf(document))
      )
        this.#note(changedBy, document)
    }
  }

  #note(request: string, document: Stored): void {
    const effects = this.#effects.get(request) ?? new Set()
    this.#effects.set(request, effects.add(document._id))
    if ('sourceId' in document) effects.add(document.sourceId)
  }

  #documents(): Stored[] {
    return [...this.#database.all('sources').filter(isLive), ...this.#database.all('quotes')]
  }

  /**
   * Holds for each answer.
   *
   * @param knows whether this delivery knew of all others of the request.
   */
  assertAnswer(
    { id: request }: PostRequest,
    { source, quotes }: StoredAnswer,
    knows: boolean,
  ): void {
    // If a quote is deleted, so is what the request did to the source by it.
    const isPartlyDeleted = quotes.some(({ outcome }) => outcome === 'deleted')
    for (const { id, outcome } of [source, ...quotes]) {
      if (outcome === 'created')
        this.#creators.set(id, (this.#creators.get(id) ?? new Set()).add(request))
      const isHidden =
        knows && outcome === 'unchanged' && this.#effects.get(request)?.has(id) === true
      if (isPartlyDeleted && id === source.id) continue
      assert(!isHidden, `${request} was answered unchanged for ${id}, which it changed`)
    }
  }

  /** Holds when every job has ended. What a deleted request created may be created again. */
  assertCreatedOnce(requests: readonly StoreRequest[], failed: typeof requests): void {
    const failedIds = new Set(failed.map(({ id }) => id))
    const stamps = new Map(requests.map(({ id, stamp }) => [id, stamp]))
    for (const { _id, meta } of this.#documents()) {
      const upTo = deletedUpTo(this.#database, sourceIdIn(_id), _id)
      const isLater = (id: string) => (stamps.get(id) ?? 0) > upTo
      if (!isLater(meta.insertedBy)) continue
      const expected = failedIds.has(meta.insertedBy) ? [] : [meta.insertedBy]
      assert.deepEqual(
        [...(this.#creators.get(_id) ?? [])].filter(isLater),
        expected,
        `the requests that were answered created for ${_id}`,
      )
    }
  }
}

/** The fields that a request sets. */
function valuesOf(document: Stored): object {
  const { meta, createdAt, wordCount: _words, ...values } = document
  const {
    quoteCount: _count,
    acceptedAt: _at,
    position: _position,
    ...others
  }: Partial<SourceDocument & QuoteDocument> = values
  return { ...others, ...(meta.derived?.includes('createdAt') !== true && { createdAt }) }
}
