// Makes the drafts of new documents from accepted requests.
import { effectiveScore, type QuoteFields } from '@sluice/contract'
import { ObjectId } from 'mongodb'
import type { QuoteValues, SourceValues } from './documents.ts'
import { quoteIdsOf, sourceIdOf } from './ids.ts'
import type {
  InputThread,
  NewQuote,
  QuoteDraft,
  RequestStamp,
  SourceDraft,
  SourceIdentity,
  StoreRequest,
} from './thread.ts'

/** Converts an accepted request into the store's own terms. */
export function inputThread({ id, tenant, stamp, redelivered, thread, digest }: StoreRequest): InputThread {
  const { service, externalId, createdAt, ...values } = thread.source
  const sourceId = sourceIdOf(tenant, thread.source)
  return {
    id,
    stamp,
    redelivered,
    identity: { id: sourceId, tenant, service, externalId },
    source: createdAt === undefined ? values : { ...values, createdAt: new Date(createdAt) },
    quotes: thread.quotes.map(quoteValues),
    quoteIds: quoteIdsOf(sourceId, thread.quotes),
    ...(digest !== undefined && { digest }),
  }
}

function quoteValues({ createdAt, ...values }: QuoteFields): QuoteValues {
  return createdAt === undefined ? values : { ...values, createdAt: new Date(createdAt) }
}

/** The version of a document that is not written yet. */
const UNWRITTEN = new ObjectId('000000000000000000000000')
/** The word count of a text that is not counted yet. */
export const UNCOUNTED = -1

/** Makes the draft of a source that is not stored. */
export function newSource(
  { id, ...identity }: SourceIdentity,
  input: SourceValues,
  request: RequestStamp,
): SourceDraft {
  const acceptedAt = acceptedAtOf(request.stamp)
  const { values, derived } = withDerived(input, acceptedAt)
  return {
    document: {
      _id: id,
      ...identity,
      ...values,
      acceptedAt,
      status: 'TRANSCRIBED',
      wordCount: 0,
      quoteCount: 0,
      meta: { version: UNWRITTEN, stamp: request.stamp, ...derived, insertedBy: request.id },
    },
    changed: true,
    advanced: true,
  }
}

/** Makes the draft of a quote that is not stored. */
export function newQuote({ id, sourceId, cover }: NewQuote, input: QuoteValues, request: RequestStamp): QuoteDraft {
  const { values, derived } = withDerivedScore(input)
  return {
    document: {
      _id: id,
      sourceId,
      ...values,
      wordCount: UNCOUNTED,
      meta: {
        version: UNWRITTEN,
        stamp: request.stamp,
        ...derived,
        insertedBy: request.id,
        ...(cover > 0 && { cover }),
      },
    },
    changed: true,
    advanced: true,
  }
}

/** Stamps are microseconds since 1970, so a stamp is also the moment of acceptance. */
export function acceptedAtOf(stamp: number): Date {
  return new Date(Math.floor(stamp / 1000))
}

interface Derived {
  derived?: string[]
}

/** Adds the fields of a source that no request gave: the date from the moment of acceptance, and the score from the votes. */
export function withDerived(
  input: SourceValues,
  acceptedAt: Date,
): { values: SourceValues & { createdAt: Date }; derived: Derived } {
  const { values, derived } = withDerivedScore({ ...input, createdAt: input.createdAt ?? acceptedAt })
  if (input.createdAt !== undefined) return { values, derived }
  return { values, derived: { derived: ['createdAt', ...(derived.derived ?? [])] } }
}

/** Adds the score that follows from the votes, if no request gave one. */
export function withDerivedScore<Values extends QuoteValues | SourceValues>(
  values: Values,
): { values: Values; derived: Derived } {
  const score = effectiveScore(values)
  if (values.score !== undefined || score === undefined) return { values, derived: {} }
  return { values: { ...values, score }, derived: { derived: ['score'] } }
}
