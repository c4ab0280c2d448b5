import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import { ERASED, type QuoteFields } from '@sluice/contract'
import {
  type DeletedAnswer,
  type DeleteRequest,
  type PostRequest,
  type StoredAnswer,
  type StoreRequest,
  seenQuote,
} from '@sluice/store'
import { quoteIdsOf, sourceIdOf, sourceIdOfRequest } from '@sluice/store/ids'
import { stampOf } from '../support/visible.ts'
import type { MemoryDatabase } from './memory-database.ts'
import { deletedUpTo } from './position-law.ts'
import type { Simulation } from './simulation.ts'
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
  readonly #redactions: { request: DeleteRequest; answered: ReadonlySet<string> }[] = []

  constructor(database: MemoryDatabase, requests: readonly StoreRequest[]) {
    this.#database = database
    this.#requests = requests
    this.#deletions = requests.filter(
      (request): request is DeleteRequest => 'deletes' in request && !request.deletes.redacts,
    )
  }

  /** Holds for each answer to a deletion: each delivery gets the same, without another deletion. */
  noteDeleted({ id, deletes }: DeleteRequest, answer: DeletedAnswer): void {
    const before = this.#answers.get(id) ?? answer
    // Another deletion may be noted in its place, and then its number of quotes is not known.
    const isOnly = this.#deletions.every(
      (other) => other.id === id || other.deletes.sourceId !== deletes.sourceId,
    )
    if (isOnly) assert.deepEqual(answer, before, `${id} was answered in two ways`)
    this.#answers.set(id, answer)
  }

  /**
   * Holds from the answer to a redaction on: nobody sees the words of earlier posts that were
   * answered before it was delivered. An erasure waits for the answers to the others.
   */
  noteRedacted(request: DeleteRequest, answered: ReadonlySet<string>): void {
    this.#redactions.push({ request, answered })
  }

  /** The deletions that were answered so far. */
  answered(): DeleteRequest[] {
    return this.#deletions.filter(({ id, tenant }) => this.#answers.has(id) && tenant === TENANT)
  }

  /**
   * Holds for each answer to a post: only a later deletion of its tenant deletes it, and it has
   * nothing that a deletion deleted that was answered before the post was delivered.
   */
  noteStored(
    request: PostRequest,
    { source, quotes }: StoredAnswer,
    answered: readonly DeleteRequest[],
  ): void {
    for (const { id, outcome } of [source, ...quotes]) {
      const isLater = ({ tenant, stamp, deletes }: DeleteRequest) =>
        tenant === request.tenant && stamp > request.stamp && names(deletes, source.id, id)
      if (outcome === 'deleted')
        assert(this.#deletions.some(isLater), `${request.id} was deleted by no deletion`)
    }
    if (source.outcome !== 'deleted') this.#posts.add(request)
    for (const { stamp, deletes } of answered)
      for (const { id, outcome: _, ...quote } of quotes)
        if (names(deletes, source.id, id) && stamp < request.stamp)
          assertSaid(quotesIn(this.#postsOf(source.id, stamp), source.id, id), quote)
  }

  /** The posts of a source with later stamps and, with `answered`, those that are not in it. */
  #postsOf(sourceId: string, after: number, answered?: ReadonlySet<string>): PostRequest[] {
    return this.#requests.filter(
      (request): request is PostRequest =>
        'thread' in request &&
        (request.stamp > after || answered?.has(request.id) === false) &&
        sourceIdOfRequest(request) === sourceId,
    )
  }

  /** Holds after every write. */
  watch(): void {
    if (this.#requests.every((request) => 'thread' in request)) return
    const threads = visibleThreads(this.#database)
    for (const { request, answered } of this.#redactions) {
      const { sourceId, quoteIds = [] } = request.deletes
      const { source, quotes = {} } = threads.get(sourceId) ?? {}
      const posts = this.#postsOf(sourceId, request.stamp, answered)
      assertSaid(
        posts.map(({ thread: { source } }) => source),
        wordsOf(source),
      )
      for (const id of quoteIds) assertSaid(quotesIn(posts, sourceId, id), wordsOf(quotes[id]))
    }
    for (const { stamp, deletes } of this.answered()) {
      const thread = threads.get(deletes.sourceId)
      if (thread === undefined) continue
      const posts = this.#postsOf(deletes.sourceId, stamp)
      if (names(deletes, deletes.sourceId))
        assertSaid(
          posts.map(({ thread: { source } }) => source),
          thread.source,
        )
      for (const [quoteId, quote] of Object.entries(thread.quotes)) {
        if (!names(deletes, deletes.sourceId, quoteId)) continue
        assertSaid(quotesIn(posts, deletes.sourceId, quoteId), quote)
        assert(stampOf(String(quote.position)) > stamp, 'a deleted position is seen')
      }
    }
    for (const { stamp, thread, tenant } of this.#posts) {
      const id = sourceIdOf(tenant, thread.source)
      if (deletedUpTo(this.#database, id) > stamp) continue
      const { source, quotes = {} } = threads.get(id) ?? {}
      const isErased = (quoteId?: string) =>
        this.#requests.some(
          (one) =>
            'deletes' in one &&
            one.deletes.redacts &&
            one.deletes.sourceId === id &&
            one.stamp > stamp &&
            (quoteId === undefined || one.deletes.quoteIds?.includes(quoteId)),
        )
      assertHas(source, thread.source, isErased())
      quoteIdsOf(id, thread.quotes).forEach((quoteId, at) => {
        if (deletedUpTo(this.#database, id, quoteId) > stamp) return
        const { exportedId: _, ...said } = { ...thread.quotes[at] }
        assertHas(quotes[quoteId], said, isErased(quoteId))
      })
    }
  }
}

/** Returns whether a deletion names this quote or, without an id of a quote, its whole source. */
function names(deletes: DeleteRequest['deletes'], sourceId: string, quoteId?: string): boolean {
  if (deletes.sourceId !== sourceId) return false
  return deletes.quoteIds === undefined || deletes.quoteIds.some((id) => id === quoteId)
}

function quotesIn(posts: readonly PostRequest[], sourceId: string, id: string): QuoteFields[] {
  return posts.flatMap(({ thread: { quotes } }) =>
    quotes.filter((_, at) => quoteIdsOf(sourceId, quotes)[at] === id),
  )
}

/** Returns the fields that a redaction erases, without those that are erased. */
function wordsOf(fields: object = {}): object {
  const isWords = (name: string) =>
    ['text', 'speaker', 'title', 'description', 'url'].includes(name)
  const words = Object.entries(fields).filter(([name, value]) => isWords(name) && value !== ERASED)
  return Object.fromEntries(words)
}

/** Fails if a field has a value that none of these said. */
function assertSaid(said: readonly object[], seen: object): void {
  for (const [name, value] of Object.entries(seen))
    assert(
      isDerived(name, value) ||
        said.some((one) => isDeepStrictEqual(sentValue(one, name), sentValue(seen, name))),
      `a deleted ${name} is seen`,
    )
}

/**
 * Fails if a quote is stored of which nothing is seen or, with `all`, of which some is not seen. A
 * process that died may leave deleted fields, because totals agree with them.
 */
export function assertRemoved({ database }: Simulation, all?: 'all'): void {
  const sources = new Map(database.all('sources').map((source) => [source._id, source]))
  for (const quote of database.all('quotes')) {
    const seen = seenQuote(quote, sources.get(quote.sourceId))
    assert(all ? seen === quote : seen !== undefined, `${quote._id} is deleted, and is there`)
  }
}

const TENANT = 'acme'

/** Fails unless a document has all fields of a request. Later requests may have changed them. */
function assertHas(document: object | undefined, fields: object, mayBeErased: boolean): void {
  for (const name of Object.keys(fields)) {
    const isSeen = document && name in document
    assert(
      isSeen && (mayBeErased || Reflect.get(document, name) !== ERASED),
      `${name} was posted after the deletion, and is not seen`,
    )
  }
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
