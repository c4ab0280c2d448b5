import assert from 'node:assert/strict'
import type { PostRequest, QuoteDocument, StoredAnswer } from '@sluice/store'
import { quoteIdsOf, sourceIdOf } from '@sluice/store/ids'
import { expectedThreads } from '../support/oracle.ts'
import { visible } from '../support/visible.ts'
import type { Simulation } from './simulation.ts'

// Laws 1 and 4: what was answered is stored, and as the requests make it.

/** Law 4, at the moment of the answer. */
export function assertAnswerIsStored(
  { database }: Simulation,
  { source, quotes }: StoredAnswer,
): void {
  const ids = new Set(
    [...database.all('sources', 'majority'), ...database.all('quotes', 'majority')].map(
      ({ _id }) => _id,
    ),
  )
  for (const { id } of [source, ...quotes])
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
  requests: readonly PostRequest[],
  failed: typeof requests,
): void {
  const stored = visibleThreads(simulation)
  const possible = subsetsOf(failed).map((left) =>
    expectedThreads(requests.filter((request) => !left.includes(request))),
  )
  if (failed.length === 0) {
    assert.deepEqual(stored, possible[0])
    return
  }
  for (const [id, thread] of stored) {
    for (const [quoteId, quote] of Object.entries(thread.quotes))
      assert(
        possible.some((threads) => isSame(threads.get(id)?.quotes[quoteId], quote)),
        `${quoteId} is as no order makes it`,
      )
  }
  for (const request of requests.filter((one) => !failed.includes(one))) {
    const quotes = stored.get(sourceIdOf(request.tenant, request.thread.source))?.quotes ?? {}
    for (const id of quoteIdsOf(
      sourceIdOf(request.tenant, request.thread.source),
      request.thread.quotes,
    ))
      assert(id in quotes)
  }
}

export function visibleThreads({ database }: Simulation): Map<string, ReturnType<typeof visible>> {
  const quotes = new Map<string, QuoteDocument[]>()
  for (const quote of database.all('quotes'))
    quotes.set(quote.sourceId, [...(quotes.get(quote.sourceId) ?? []), quote])
  return new Map(
    database
      .all('sources')
      .map((source) => [source._id, visible(source, quotes.get(source._id) ?? [])]),
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
