import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import type {
  DeletedAnswer,
  DeleteRequest,
  PostRequest,
  StoredAnswer,
  StoreRequest,
} from '@sluice/store'
import { quoteIdsOf, sourceIdOf, sourceIdOfRequest } from '@sluice/store/ids'
import { stampOf } from '../support/visible.ts'
import type { MemoryDatabase } from './memory-database.ts'
import { deletedUpTo } from './position-law.ts'
import { visibleThreads } from './stored-law.ts'

// Law 6: what was accepted before a deletion is never seen again after the deletion's answer; what
// is accepted after it is stored as if nothing had been there.

export class DeletionLaw {
  readonly #database: MemoryDatabase
  readonly #requests: readonly StoreRequest[]
  readonly #deletions: readonly DeleteRequest[]
  /** The answers to deletions, by request. */
  readonly #answers = new Map<string, DeletedAnswer>()
  readonly #posts = new Set<PostRequest>()

  constructor(database: MemoryDatabase, requests: readonly StoreRequest[]) {
    this.#database = database
    this.#requests = requests
    this.#deletions = requests.filter((request) => 'deletes' in request)
  }

  /** Holds for each answer to a deletion: each delivery gets the same, without another deletion. */
  noteDeleted({ id, deletes }: DeleteRequest, answer: DeletedAnswer): void {
    const before = this.#answers.get(id) ?? answer
    const isOnly = this.#deletions.every(
      (other) => other.id === id || other.deletes.sourceId !== deletes.sourceId,
    )
    if (isOnly) assert.deepEqual(answer, before, `${id} was answered in two ways`)
    this.#answers.set(id, answer)
  }

  /** Holds for each answer to a post: only a later deletion of its tenant deletes it. */
  noteStored(request: PostRequest, { source }: StoredAnswer): void {
    if (source.outcome !== 'deleted') this.#posts.add(request)
    const isLater = ({ tenant, stamp, deletes }: DeleteRequest) =>
      tenant === request.tenant && stamp > request.stamp && deletes.sourceId === source.id
    if (source.outcome === 'deleted')
      assert(this.#deletions.some(isLater), `${request.id} was deleted by no deletion`)
  }

  /** Holds after every write. */
  watch(): void {
    if (this.#answers.size === 0) return
    const threads = visibleThreads(this.#database)
    for (const { id, tenant, stamp, deletes } of this.#deletions) {
      const thread = threads.get(deletes.sourceId)
      if (thread === undefined || !this.#answers.has(id) || tenant !== TENANT) continue
      const later = this.#requests.filter(
        (request) => sourceIdOfRequest(request) === deletes.sourceId && request.stamp > stamp,
      )
      const posts = later.filter((request) => 'thread' in request)
      const saysSource = (name: string, value: unknown) =>
        posts.some(({ thread }) => isDeepStrictEqual(sentValue(thread.source, name), value))
      for (const [name, value] of Object.entries(thread.source))
        assert(isDerived(name, value) || saysSource(name, value), `a deleted ${name} is seen`)
      for (const [quoteId, quote] of Object.entries(thread.quotes)) {
        const said = posts.flatMap(({ thread: { quotes } }) =>
          quotes.filter((_, at) => quoteIdsOf(deletes.sourceId, quotes)[at] === quoteId),
        )
        const says = (name: string, value: unknown) =>
          said.some((one) => isDeepStrictEqual(sentValue(one, name), value))
        for (const [name, value] of Object.entries(quote))
          assert(isDerived(name, value) || says(name, value), `a deleted ${name} is seen`)
        assert(stampOf(String(quote.position)) > stamp, `a deleted position is seen`)
      }
    }
    for (const { stamp, thread, tenant } of this.#posts) {
      const id = sourceIdOf(tenant, thread.source)
      if (deletedUpTo(this.#database, id) > stamp) continue
      const { source, quotes = {} } = threads.get(id) ?? {}
      assertHas(source, thread.source)
      quoteIdsOf(id, thread.quotes).forEach((quoteId, at) => {
        assertHas(quotes[quoteId], thread.quotes[at] ?? {})
      })
    }
  }
}

const TENANT = 'acme'

/** Fails unless a document has all fields of a request. Later requests may have changed them. */
function assertHas(document: object | undefined, fields: object): void {
  for (const name of Object.keys(fields))
    assert(document && name in document, `${name} was posted after the deletion, and is not seen`)
}

function sentValue(fields: object, name: string): unknown {
  const value: unknown = Reflect.get(fields, name)
  return name === 'createdAt' && typeof value === 'string' ? new Date(value) : value
}

/** Returns whether the store derives the value: totals, positions, scores, and dates of 1970. */
function isDerived(name: string, value: unknown): boolean {
  return (
    ['wordCount', 'quoteCount', 'position', 'score'].includes(name) ||
    (value instanceof Date && value.getTime() < Date.UTC(2000, 0))
  )
}
