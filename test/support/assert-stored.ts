// Compares the ledger with the store, and fails on any difference.
import assert from 'node:assert/strict'
import {
  mongoCommands,
  type QuoteDocument,
  repairSources,
  type SourceDocument,
} from '@sluice/store'
import type { Db } from 'mongodb'
import { clockAhead } from '../laws/support/open-store.ts'
import { openTokens } from '../laws/support/open-tokens.ts'
import { compare, type Differences, wrongTotals } from './ledger.ts'
import type { Posted } from './post-thread.ts'
import { until } from './until.ts'

/** A repair counts the writer of a token this old as dead. */
const EXPIRED_MS = 120_000

/** SecantusDB scans collections, which takes longer than a command of Sluice may. */
const SCAN_MS = 120_000

interface Options {
  afterCrash?: boolean
}

/** Texts are large, and their words are counted in the documents. */
const WITHOUT_TEXT = { projection: { text: 0 } }

const NO_DIFFERENCES: Differences = {
  lost: [],
  storedTwice: [],
  neverAccepted: [],
  outdated: [],
  wrongTotals: [],
}

/**
 * Compares the answers to callers with the stored documents, when every job is done: no accepted
 * document is lost, none is stored twice, each was posted and not refused, each content is the last
 * one accepted, and each thread is consistent.
 *
 * @param afterCrash a writer died or failed, so its last token may still be open: that is repaired
 * first.
 */
export async function assertStored(
  db: Db,
  posted: readonly Posted[],
  options: Options = {},
): Promise<void> {
  assert.deepEqual(await readDifferences(db, posted, options), NO_DIFFERENCES)
}

/** Reads what is stored and compares it with the ledger. Throws if a token stays open. */
export async function readDifferences(
  db: Db,
  posted: readonly Posted[],
  { afterCrash = false }: Options,
): Promise<Differences> {
  if (afterCrash)
    await repairSources(
      mongoCommands(db, { limitMs: SCAN_MS }),
      { repair: true },
      clockAhead(EXPIRED_MS),
    )
  // Workers may still recount in the background. The token of a recount is removed, and never
  // settled.
  const sources = await until('no token to be open', async () => {
    const found = await db.collection<SourceDocument>('sources').find().toArray()
    return (await openTokens(db, ...found)).length === 0 ? found : undefined
  })
  const quotes = await db.collection<QuoteDocument>('quotes').find({}, WITHOUT_TEXT).toArray()
  return compare(posted, sources, quotes)
}

/** Compares each source's totals with its quotes. A quote without its source fails too. */
export function assertConsistent(
  sources: readonly SourceDocument[],
  quotes: readonly QuoteDocument[],
): void {
  assert.deepEqual(wrongTotals(sources, quotes), [])
}
