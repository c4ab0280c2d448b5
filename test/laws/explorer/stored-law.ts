import assert from 'node:assert/strict'
import {
  isLive,
  type PostRequest,
  type StoredAnswer,
  type StoreRequest,
  seenQuote,
} from '@sluice/store'
import { quoteIdsOf, sourceIdOf } from '@sluice/store/ids'
import { expectedThreads, type Visible } from '../support/oracle.ts'
import { stampOf, visible } from '../support/visible.ts'
import type { MemoryDatabase } from './memory-database.ts'
import { deletedUpTo } from './position-law.ts'
import type { Simulation } from './simulation.ts'
import { tokensOf } from './totals-law.ts'

// Laws 1 and 4: what was answered is stored, and as the requests make it.

/** Threads have later dates than requests, whose stamps begin with 1970. */
const FIRST_DATE = Date.UTC(2000, 0)

/** Law 4, at the moment of the answer, unless a later deletion has deleted it. */
export function assertAnswerIsStored(
  { database }: Simulation,
  { stamp }: PostRequest,
  { source, quotes }: StoredAnswer,
): void {
  const ids = new Set(
    [...database.all('sources', 'majority'), ...database.all('quotes', 'majority')].map(
      ({ _id }) => _id,
    ),
  )
  for (const { id } of [source, ...quotes])
    if (stamp > deletedUpTo(database, source.id, id))
      assert(ids.has(id), `${id} was answered, and no majority has it`)
  for (const { id, text } of quotes)
    assert.notEqual(text, '', `${id} was answered without its text`)
}

/**
 * Laws 1 and 4: each document is as the requests make it in the order of acceptance; one that
 * failed may have been stored or not.
 */
export function assertStored(
  simulation: Simulation,
  requests: readonly StoreRequest[],
  failed: typeof requests,
): void {
  const posts = requests.filter((request) => 'thread' in request)
  const deletions = requests.filter((request) => 'deletes' in request)
  const stored = visibleThreads(simulation.database)
  const possible = subsetsOf(failed).map((left) =>
    expectedThreads(requests.filter((request) => !left.includes(request))),
  )
  const sources = simulation.database.all('sources')
  const unsettled = sources.filter((source) => tokensOf(simulation, source).length > 0)
  const isUnsettled = new Set(unsettled.map(({ _id }) => _id))
  const likeStored = possible.map(
    (threads) =>
      new Map(
        [...threads].map(([id, thread]) => {
          const found = stored.get(id)
          const placed = withLaterPlaces(thread, found)
          return [id, isUnsettled.has(id) ? withTotalsOf(placed, found) : placed]
        }),
      ),
  )
  if (failed.length === 0) {
    assert.deepEqual(stored, deletions.length > 0 ? likeStored[0] : possible[0])
    return
  }
  for (const [id, thread] of stored) {
    for (const [quoteId, quote] of Object.entries(thread.quotes))
      assert(
        likeStored.some((threads) => isSame(threads.get(id)?.quotes[quoteId], quote)),
        `${quoteId} is as no order makes it`,
      )
  }
  for (const request of posts.filter((one) => !failed.includes(one))) {
    const sourceId = sourceIdOf(request.tenant, request.thread.source)
    const later = deletions.filter(
      ({ stamp, deletes }) => stamp > request.stamp && deletes.sourceId === sourceId,
    )
    const quotes = stored.get(sourceId)?.quotes ?? {}
    for (const id of quoteIdsOf(sourceId, request.thread.quotes))
      assert(id in quotes || later.some(({ deletes }) => deletes.quoteIds?.includes(id) !== false))
  }
}

/**
 * If a deletion is stored after later posts, the first of these may be unknown. Positions, and a
 * date that no request gave, may then be of another of them.
 */
function withLaterPlaces(expected: Visible, stored: Visible | undefined): Visible {
  const isDerived = (date: unknown) => date instanceof Date && date.getTime() < FIRST_DATE
  const places = Object.values(expected.quotes).map(({ position }) => stampOf(String(position)))
  const first = Math.min(...places)
  const quotes = Object.entries(expected.quotes).map(([id, quote]) => {
    const position = String(stored?.quotes[id]?.position)
    const isLater = stampOf(position) >= Math.max(first, stampOf(String(quote.position)))
    return [id, isLater ? { ...quote, position } : quote]
  })
  const createdAt = stored?.source.createdAt
  const isLater =
    isDerived(createdAt) &&
    isDerived(expected.source.createdAt) &&
    Number(createdAt) >= Number(expected.source.createdAt)
  return {
    source: { ...expected.source, ...(isLater && { createdAt }) },
    quotes: Object.fromEntries(quotes),
  }
}

/** While a token is open, the totals may differ. What repairs them is checked later. */
function withTotalsOf(expected: Visible, stored: Visible | undefined): Visible {
  if (stored === undefined) return expected
  const { wordCount, quoteCount } = stored.source
  return { ...expected, source: { ...expected.source, wordCount, quoteCount } }
}

/** What readers see. */
export function visibleThreads(database: Pick<MemoryDatabase, 'all'>): Map<string, Visible> {
  const quotes = Map.groupBy(database.all('quotes'), ({ sourceId }) => sourceId)
  return new Map(
    database.all('sources').flatMap((source) => {
      const shown = (quotes.get(source._id) ?? []).flatMap(
        (quote) => seenQuote(quote, source) ?? [],
      )
      return isLive(source) ? [[source._id, visible(source, shown)]] : []
    }),
  )
}

/** While a dead writer's token is in the source, the totals may differ from the quotes. */
export function withoutTotals(threads: ReturnType<typeof visibleThreads>) {
  return [...threads].map(
    ([
      id,
      {
        source: { wordCount, quoteCount, ...source },
        quotes,
      },
    ]) => [id, source, quotes],
  )
}

function subsetsOf<Item>(items: readonly Item[]): Item[][] {
  const [first, ...others] = items
  if (first === undefined) return [[]]
  const subsets = subsetsOf(others)
  return [...subsets, ...subsets.map((subset) => [first, ...subset])]
}

function isSame(one: unknown, other: unknown): boolean {
  try {
    assert.deepEqual(one, other)
    return true
  } catch {
    return false
  }
}
