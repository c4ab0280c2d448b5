// What a deletion leaves of a source, and whose deletion counts.
import {
  type Deleted,
  type DeletionMark,
  isLive,
  type SourceDocument,
  type SourceMarks,
  type SourceOrTombstone,
} from '../documents.ts'
import { hashTuple, listKeyOf } from '../ids.ts'
import { survivorsOf } from '../seen-quotes.ts'
import { foldStamps, stampOfField } from '../stored-fields.ts'
import { acceptedAtOf, withDerived } from './drafts.ts'
import { inputOfSource } from './merge.ts'

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
