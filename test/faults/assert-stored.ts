import assert from 'node:assert/strict'
import { mongoCommands, type QuoteDocument, repairSources, type SourceDocument } from '@sluice/store'
import type { Db } from 'mongodb'
import { clockAhead } from '../laws/support/open-store.ts'
import { openTokens } from '../laws/support/open-tokens.ts'
import type { Posted } from './post-thread.ts'
import { until } from './until.ts'

/** The statuses that promise that a thread is stored, or will be. */
const ACCEPTED = new Set<unknown>([200, 202, 504])

/** A repair counts the writer of a token this old as dead. */
const EXPIRED_MS = 120_000

/**
 * Compares the answers to callers with the stored documents, when every job is done: no accepted document is lost, none is stored twice, each was
 * posted, and each thread is consistent.
 *
 * @param afterCrash a writer died or failed, so its last token may still be open: that is repaired first.
 */
export async function assertStored(db: Db, posted: readonly Posted[], { afterCrash = false } = {}): Promise<void> {
  if (afterCrash) await repairSources(mongoCommands(db), { repair: true }, clockAhead(EXPIRED_MS))
  const sources = await db.collection<SourceDocument>('sources').find().toArray()
  const quotes = await db.collection<QuoteDocument>('quotes').find().toArray()
  const found = new Set(storedNames(sources, quotes))
  assert.equal(found.size, sources.length + quotes.length, 'a source or a quote is stored twice')
  const accepted = posted.filter(({ status }) => ACCEPTED.has(status)).flatMap(namesOf)
  assert.deepEqual(
    accepted.filter((name) => !found.has(name)),
    [],
    'accepted, and lost',
  )
  const sent = new Set(posted.flatMap(namesOf))
  assert.deepEqual(
    [...found].filter((name) => !sent.has(name)),
    [],
    'stored, but never posted',
  )
  assertConsistent(sources, quotes)
  await until('no token to be open', 2_000, async () => {
    const open = await Promise.all(sources.map((source) => openTokens(db, source)))
    return open.flat().length === 0
  })
}

/** Compares each source's totals with its quotes. A quote without its source fails too. */
export function assertConsistent(sources: readonly SourceDocument[], quotes: readonly QuoteDocument[]): void {
  const bySource = Map.groupBy(quotes, (quote) => quote.sourceId)
  for (const { _id, externalId, wordCount, quoteCount } of sources) {
    const own = bySource.get(_id) ?? []
    bySource.delete(_id)
    const words = own.reduce((sum, quote) => sum + quote.wordCount, 0)
    assert.deepEqual(
      { wordCount, quoteCount },
      { wordCount: words, quoteCount: own.length },
      `${externalId} disagrees with its quotes`,
    )
  }
  assert.deepEqual([...bySource.keys()], [], 'quotes without their source')
}

function storedNames(sources: readonly SourceDocument[], quotes: readonly QuoteDocument[]): string[] {
  const names = new Map(sources.map(({ _id, externalId }) => [_id, externalId]))
  return [...names.values(), ...quotes.map(({ sourceId, externalId }) => `${names.get(sourceId)}/${externalId}`)]
}

function namesOf({ externalId, quotes }: Posted): string[] {
  return [externalId, ...quotes.map((quote) => `${externalId}/${quote}`)]
}
