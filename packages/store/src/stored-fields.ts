// What stored documents have of requests: fields, their stamps and derived fields, and positions.
import { effectiveScore, type Votes } from '@sluice/contract'
import type {
  QuoteDocument,
  QuoteValues,
  SourceDocument,
  SourceValues,
  Stamps,
} from './documents.ts'

/**
 * A stamp has 16 digits until the year 2286. The setting `MAX_QUOTES` keeps an index within six
 * digits.
 */
const STAMP_DIGITS = 16
const INDEX_DIGITS = 6

/** Positions sort as text: by acceptance, then by the order in the request. */
export function positionAt(stamp: number, index: number): string {
  return `${String(stamp).padStart(STAMP_DIGITS, '0')}.${String(index).padStart(INDEX_DIGITS, '0')}`
}

/** Returns the last position that a request with this stamp can give. */
export function lastPositionOf(stamp: number): string {
  return positionAt(stamp, 10 ** INDEX_DIGITS - 1)
}

/** Returns the position with another stamp. */
export function movedTo(stamp: number, position: string): string {
  return positionAt(stamp, Number(position.slice(STAMP_DIGITS + 1)))
}

/** Stamps are microseconds since 1970, so a stamp is also the moment of acceptance. */
export function acceptedAtOf(stamp: number): Date {
  return new Date(Math.floor(stamp / 1000))
}

/**
 * Returns the stamp of a stored field. The source's cover counts unless the quote's own cover is as
 * high.
 */
export function stampOfField(
  { meta }: Pick<QuoteDocument, 'meta'>,
  name: string,
  cover: number,
): number {
  const own = meta.stamps?.[name] ?? meta.stamp
  return cover > (meta.cover ?? 0) ? Math.max(own, cover) : own
}

export function inputOfQuote(document: QuoteDocument): QuoteValues {
  const { _id, sourceId, position, wordCount, meta, ...values } = document
  if (meta.derived !== undefined) delete values.score
  return values
}

export function inputOfSource(document: SourceDocument): SourceValues {
  const {
    _id,
    tenant,
    service,
    externalId,
    acceptedAt,
    status,
    wordCount,
    quoteCount,
    meta,
    ...values
  } = document
  const input: SourceValues = values
  for (const name of meta.derived ?? [])
    if (name === 'createdAt' || name === 'score') delete input[name]
  return input
}

/** Returns one stamp for the newest fields, and one for each older field. */
export function foldStamps(stamps: Record<string, number>): Stamps {
  const stamp = Math.max(0, ...Object.values(stamps))
  const older = Object.entries(stamps).filter(([, at]) => at < stamp)
  return older.length === 0 ? { stamp } : { stamp, stamps: Object.fromEntries(older) }
}

type WithDerived<Values> = { values: Values; derived: { derived?: string[] } }

/** Adds the score from the votes, if no request contains one. */
export function withDerivedScore<Values extends Votes>(values: Values): WithDerived<Values> {
  const score = effectiveScore(values)
  if (values.score !== undefined || score === undefined) return { values, derived: {} }
  return { values: { ...values, score }, derived: { derived: ['score'] } }
}

/** Adds the derived fields of a source: the date of acceptance, and the score from the votes. */
export function withDerived(
  input: SourceValues,
  acceptedAt: Date,
): WithDerived<SourceValues & { createdAt: Date }> {
  const { values, derived } = withDerivedScore({
    ...input,
    createdAt: input.createdAt ?? acceptedAt,
  })
  if (input.createdAt !== undefined) return { values, derived }
  return { values, derived: { derived: ['createdAt', ...(derived.derived ?? [])] } }
}
