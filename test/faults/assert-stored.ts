// Holds the ledger against the store, and fails on any difference.
import assert from 'node:assert/strict'
import { mongoCommands, type QuoteDocument, repairSources, type SourceDocument } from '@sluice/store'
import type { Db } from 'mongodb'
import { clockAhead } from '../laws/support/open-store.ts'
import { openTokens } from '../laws/support/open-tokens.ts'
import { compare, type Differences, wrongTotals } from './ledger.ts'
import type { Posted } from './post-thread.ts'
import { until } from './until.ts'

/** A repair counts the writer of a token this old as dead. */
const SETTLED_MS = 120_000

interface Options {
  afterCrash?: boolean
}

/** Texts are large, and their words are counted in the documents. */
const WITHOUT_TEXT = { projection: { text: 0 } }

const NO_DIFFERENCES: Differences = { lost: [], storedTwice: [], neverAccepted: [], outdated: [], wrongTotals: [] }

/**
 * Holds what callers were told against what is stored once every job is done: nothing that was accepted is lost, nothing is there twice, nothing is
 * there that was refused or that nobody posted, every content is the last one accepted, and no thread is half written.
 *
 * @param afterCrash a writer died or failed, so its last token may still be open: that is repaired first.
 */
export async function assertStored(db: Db, posted: readonly Posted[], options: Options = {}): Promise<void> {
  assert.deepEqual(await readDifferences(db, posted, options), NO_DIFFERENCES)
}

/** Reads what is stored and compares it with the ledger. Throws if a token stays open. */
export async function readDifferences(
  db: Db,
  posted: readonly Posted[],
  { afterCrash = false }: Options,
): Promise<Differences> {
  if (afterCrash) await repairSources(mongoCommands(db), { repair: true }, clockAhead(SETTLED_MS))
  const sources = await db.collection<SourceDocument>('sources').find().toArray()
  const quotes = await db.collection<QuoteDocument>('quotes').find({}, WITHOUT_TEXT).toArray()
  await until('no token to be open', 2_000, async () => (await openTokens(db, ...sources)).length === 0)
  return compare(posted, sources, quotes)
}

/** Holds each source's totals against its quotes; a quote without its source is half a thread as well. */
export function assertNoHalf(sources: readonly SourceDocument[], quotes: readonly QuoteDocument[]): void {
  assert.deepEqual(wrongTotals(sources, quotes), [], 'half written')
}
