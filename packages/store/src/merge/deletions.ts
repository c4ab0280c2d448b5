// What a deletion leaves of a source and of its quotes: the fields with later stamps. So a deletion
// counts by its place in the order of acceptance, as every other request.
import {
  type DeletionMark,
  deletedUpTo,
  isLive,
  type QuoteDocument,
  type SourceDocument,
  type SourceMarks,
  type SourceOrTombstone,
} from '../documents.ts'
import { hashTuple, listKeyOf } from '../ids.ts'
import { acceptedAtOf, lastPositionOf, movedTo, withDerived, withDerivedScore } from './drafts.ts'
import { foldStamps, inputOfQuote, inputOfSource, stampOfField } from './merge.ts'

/** Returns the stamp of a tenant's own deletion, 0 without one. */
export function deletedBy(tenant: string, { meta: { deletion } }: SourceOrTombstone): number {
  if (deletion === undefined || deletion.tenant === tenant) return deletion?.stamp ?? 0
  return deletion.others?.[hashTuple(tenant)] ?? 0
}

/** Returns a source, or a tombstone with only the mark of this tenant. */
export function asSeenBy(tenant: string, source: SourceOrTombstone): SourceOrTombstone {
  const { deletion, ...meta } = source.meta
  if (deletion === undefined || (deletion.tenant === tenant && !deletion.others)) return source
  const { others: _, ...mark } = deletion
  const stamp = deletedBy(tenant, source)
  return {
    ...source,
    meta: { ...meta, ...(stamp > 0 && { deletion: { ...mark, tenant, stamp } }) },
  }
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

/** Returns the mark of a deletion that has ended, when this number of quotes is left. */
export function endedMark({ before, ...mark }: DeletionMark, left: number): DeletionMark {
  const quotes = before?.quotes
  return quotes === undefined ? mark : { ...mark, quotes: Math.max(0, quotes - left) }
}
