// What a deletion leaves of stored quotes: the fields with later stamps. So a deletion counts by
// its place in the order of acceptance, as every other request.
import type { QuoteDocument, SourceMarks } from './documents.ts'
import { inSource } from './ids.ts'
import {
  foldStamps,
  inputOfQuote,
  lastPositionOf,
  movedTo,
  stampOfField,
  withDerivedScore,
} from './stored-fields.ts'

/** Returns the stamp of the last deletion of a source, by any tenant, or of this quote. Or 0. */
export function deletedUpTo(source: { meta: SourceMarks } | undefined, quoteId = ''): number {
  const { stamp = 0, ofQuotes, others = {} } = source?.meta.deletion ?? {}
  const ofQuote = ofQuotes?.[inSource(quoteId)] ?? 0
  return Math.max(stamp, ofQuote, ...Object.values(others).map((other) => other.stamp))
}

/** Returns the fields with stamps after `upTo`, their stamps, and the first of these. */
export function survivorsOf<Values extends object>(
  values: Values,
  stampOf: (name: string) => number,
  upTo: number,
) {
  const kept: Partial<Values> = {}
  const stamps: Record<string, number> = {}
  for (const name in values) {
    if (stampOf(name) <= upTo) continue
    kept[name] = values[name]
    stamps[name] = stampOf(name)
  }
  return { kept, stamps, first: Math.min(...Object.values(stamps)) }
}

/**
 * Returns what a deletion leaves of a quote, or undefined if that is nothing. Readers and merges
 * see only this, because quotes are removed after their source is marked, and a late writer may
 * store one even later.
 */
export function seenQuote(
  quote: QuoteDocument,
  source: { meta: SourceMarks } | undefined,
): QuoteDocument | undefined {
  const upTo = deletedUpTo(source, quote._id)
  if (upTo === 0 || quote.position > lastPositionOf(upTo)) return quote
  // A later cover does not count for what a late writer stores.
  const { stamp, cover = 0 } = source?.meta.deletion?.before ?? {}
  const counts = stamp === upTo ? cover : 0
  const { kept, stamps, first } = survivorsOf(
    inputOfQuote(quote),
    (name) => stampOfField(quote, name, counts),
    upTo,
  )
  const { text, ...others } = kept
  if (text === undefined) return undefined
  const { values, derived } = withDerivedScore({ text, ...others })
  const { _id, sourceId, wordCount } = quote
  const { stamps: _older, derived: _derived, ...meta } = quote.meta
  return {
    ...{ _id, sourceId, wordCount, position: movedTo(first, quote.position) },
    ...values,
    meta: { ...meta, ...foldStamps(stamps), ...derived },
  }
}

/**
 * Returns the filter of the quotes of which `seenQuote` leaves something in these sources, but for
 * single deleted quotes: `gone` are those. One condition for each would cost all quotes of a source
 * as much as there are.
 */
export function seenFilter(
  sources: readonly { _id: string; meta: SourceMarks }[],
  gone: readonly string[] = [],
) {
  const $nor = sources.flatMap(({ _id, meta }): object[] => {
    const upTo = deletedUpTo({ meta })
    if (upTo === 0) return []
    const before = meta.deletion?.before
    const cover = before?.stamp === upTo ? before.cover : undefined
    const covered = cover !== undefined && { 'meta.cover': { $gte: cover } }
    const position = { $lte: lastPositionOf(upTo) }
    return [{ sourceId: _id, position, 'meta.stamp': { $lte: upTo }, ...covered }]
  })
  if (gone.length > 0) $nor.push({ _id: { $in: gone } })
  return $nor.length === 0 ? {} : { $nor }
}
