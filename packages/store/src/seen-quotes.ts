// What a deletion leaves of stored quotes: the fields with later stamps. So a deletion counts by its
// place in the order of acceptance, as every other request.
import { deletedUpTo, type QuoteDocument, type SourceMarks } from './documents.ts'
import {
  foldStamps,
  inputOfQuote,
  lastPositionOf,
  movedTo,
  stampOfField,
  withDerivedScore,
} from './stored-fields.ts'

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
  const upTo = deletedUpTo(source)
  if (upTo === 0 || quote.position > lastPositionOf(upTo)) return quote
  const { deletion, cover = 0 } = source?.meta ?? {}
  const { kept, stamps, first } = survivorsOf(
    inputOfQuote(quote),
    // A later cover does not count for what a late writer stores.
    (name) => stampOfField(quote, name, deletion?.before?.cover ?? 0),
    upTo,
  )
  const { text, ...others } = kept
  if (text === undefined) return undefined
  for (const name in stamps) stamps[name] = stampOfField(quote, name, cover)
  const { values, derived } = withDerivedScore({ text, ...others })
  const { _id, sourceId, wordCount } = quote
  const { stamps: _older, derived: _derived, ...meta } = quote.meta
  return {
    ...{ _id, sourceId, wordCount, position: movedTo(first, quote.position) },
    ...values,
    meta: { ...meta, ...foldStamps(stamps), ...derived },
  }
}

/** Returns the filter of the quotes of which `seenQuote` leaves something in these sources. */
export function seenFilter(...sources: { _id: string; meta: SourceMarks }[]) {
  const $nor = sources.flatMap(({ _id, meta }) => {
    const upTo = deletedUpTo({ meta })
    if (upTo === 0) return []
    const cover = meta.deletion?.before?.cover
    const covered = cover !== undefined && { 'meta.cover': { $gte: cover } }
    const position = { $lte: lastPositionOf(upTo) }
    return [{ sourceId: _id, position, 'meta.stamp': { $lte: upTo }, ...covered }]
  })
  return $nor.length === 0 ? {} : { $nor }
}
