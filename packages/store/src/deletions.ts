// What deletions leave of stored sources and quotes, and whose deletion counts. A deletion counts
// by its place in the order of acceptance, as every other request: fields with later stamps stay.
import {
  acceptedAtOf,
  type Deleted,
  type DeletionMark,
  foldStamps,
  inputOfQuote,
  inputOfSource,
  isLive,
  lastPositionOf,
  movedTo,
  type QuoteDocument,
  type SourceDocument,
  type SourceMarks,
  type SourceOrTombstone,
  stampOfField,
  withDerived,
  withDerivedScore,
} from './documents.ts'
import { hashTuple, inSource, listKeyOf } from './ids.ts'

/** Returns the stamp of the last deletion of a source, by any tenant, or of this quote. Or 0. */
export function deletedUpTo(source: { meta: SourceMarks } | undefined, quoteId = ''): number {
  const { stamp = 0, ofQuotes, others = {} } = source?.meta.deletion ?? {}
  const ofQuote = ofQuotes?.[inSource(quoteId)] ?? 0
  return Math.max(stamp, ofQuote, ...Object.values(others).map((other) => other.stamp))
}

/** Returns the fields with stamps after `upTo`, their stamps, and the first of these. */
function survivorsOf<Values extends object>(
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
  // A quote that a late writer stores has no cover that was set after the deletion.
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
 * Returns a filter for the quotes of these sources of which `seenQuote` leaves something. `gone`:
 * the ids of quotes that were deleted one by one. They share one condition, because the server
 * would compare every quote with each further one.
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

/** Returns what a tenant has deleted of a source. */
export function deletedBy(tenant: string, { meta }: { meta: SourceMarks }): Deleted {
  const { deletion } = meta
  const deleted = deletion?.tenant === tenant ? deletion : deletion?.others?.[hashTuple(tenant)]
  return deleted ?? { stamp: 0 }
}

/** Returns a source, or a tombstone with only the mark of this tenant. */
export function asSeenBy(tenant: string, source: SourceOrTombstone): SourceOrTombstone {
  const { deletion, ...meta } = source.meta
  if (deletion === undefined || (deletion.tenant === tenant && !deletion.others)) return source
  const { others: _, ofQuotes: _quotes, ...mark } = deletion
  return {
    ...source,
    meta: { ...meta, deletion: { ...mark, tenant, ...pickDeleted(deletedBy(tenant, source)) } },
  }
}

/** Returns only what says what was deleted. */
export function pickDeleted({ stamp, ofQuotes }: Deleted): Deleted {
  return { stamp, ...(ofQuotes && { ofQuotes }) }
}

/**
 * Returns what a deletion leaves of a source. If later posts are in it, the first of them may be
 * unknown: `acceptedAt` is then the first stamp that is left.
 */
export function withoutDeleted(
  source: SourceOrTombstone,
  deletion: DeletionMark,
): SourceOrTombstone {
  const { _id, wordCount, quoteCount } = source
  const { version, tokens, epoch } = source.meta
  const meta = { version, ...(tokens && { tokens }), ...(epoch && { epoch }), deletion }
  // Every post has a title, so a source without a later one has no later post.
  if (!isLive(source) || source.meta.stamp <= deletion.stamp)
    return { _id, wordCount, quoteCount, meta }
  const { tenant, service, externalId, status, title } = source
  const { insertedBy, changedBy, cover } = source.meta
  const { kept, stamps, first } = survivorsOf(
    inputOfSource(source),
    (name) => stampOfField(source, name, 0),
    deletion.stamp,
  )
  const isLater = source.acceptedAt > acceptedAtOf(deletion.stamp)
  const acceptedAt = isLater ? source.acceptedAt : acceptedAtOf(first)
  const { values, derived } = withDerived({ title, ...kept }, acceptedAt)
  const survivor: SourceDocument = {
    ...{ _id, tenant, service, externalId, status, wordCount, quoteCount, acceptedAt },
    ...values,
    meta: {
      ...meta,
      listKey: listKeyOf(tenant, acceptedAt, _id),
      ...foldStamps(stamps),
      ...derived,
      insertedBy,
      ...(changedBy !== undefined && { changedBy }),
      ...(cover !== undefined && { cover }),
    },
  }
  return survivor
}

/** Returns the mark of a deletion that has ended, when this number of quotes is left. */
export function endedMark({ before, ...mark }: DeletionMark, left: number): DeletionMark {
  const quotes = before?.quotes
  return quotes === undefined ? mark : { ...mark, quotes: Math.max(0, quotes - left) }
}
