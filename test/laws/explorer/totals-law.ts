import assert from 'node:assert/strict'
import { type SourceOrTombstone, seenQuote } from '@sluice/store'
import type { Simulation } from './simulation.ts'

// Law 3: a source agrees with its quotes.

/** Holds after every write: a source without an open token agrees with its quotes. */
export function assertTotals(simulation: Simulation): void {
  for (const source of simulation.database.all('sources'))
    if (tokensOf(simulation, source).length === 0) assertAgrees(simulation, source)
}

/**
 * Holds after every write: no watermark goes back, unless the document was removed. Remembers the
 * watermarks in `seen`.
 */
export function assertWatermarks({ database }: Simulation, seen: Map<string, number>): void {
  for (const { _id, watermark } of database.all('writers')) {
    assert(watermark >= (seen.get(_id) ?? 0), `the watermark of ${_id} goes back to ${watermark}`)
    seen.set(_id, watermark)
  }
}

/** Law 3, once every job has ended. */
export function assertAgreement(
  simulation: Simulation,
  isMeant = (_: SourceOrTombstone) => true,
): void {
  for (const source of simulation.database.all('sources'))
    if (isMeant(source)) assertAgrees(simulation, source)
}

function assertAgrees({ database }: Simulation, source: SourceOrTombstone): void {
  let [wordCount, quoteCount] = [0, 0]
  for (const quote of database.all('quotes')) {
    if (quote.sourceId !== source._id || seenQuote(quote, source) === undefined) continue
    wordCount += quote.wordCount
    quoteCount += 1
  }
  const totals = { wordCount: source.wordCount, quoteCount: source.quoteCount }
  assert.deepEqual(totals, { wordCount, quoteCount }, `${source._id} disagrees with its quotes`)
}

export function tokensOf({ database }: Simulation, { meta: { tokens = [] } }: SourceOrTombstone) {
  const watermarks = new Map(database.all('writers').map(({ _id, watermark }) => [_id, watermark]))
  return tokens.filter(({ writer, batch }) => batch > (watermarks.get(writer) ?? 0))
}

export function openTokens(simulation: Simulation) {
  return simulation.database.all('sources').flatMap((source) => tokensOf(simulation, source))
}
