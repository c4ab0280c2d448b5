// Makes the drafts of new documents from accepted requests, and the digests that show whether a text changed.
import { hash } from 'node:crypto'
import { effectiveScore, type QuoteFields } from '@sluice/contract'
import { ObjectId } from 'mongodb'
import type {
  InputThread,
  QuoteContext,
  QuoteDocument,
  QuoteDraft,
  QuoteValues,
  RequestStamp,
  SourceDocument,
  SourceDraft,
  SourceValues,
  StoreRequest,
} from '../documents.ts'
import { listKeyOf, quoteIdsOf, sourceIdOf } from '../ids.ts'

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

/** Makes the draft of a source that is not stored. The request is its whole thread, so its digest is stored. */
export function newSource({ id: insertedBy, identity, source, stamp, digest }: InputThread): SourceDraft {
  const { id, ...names } = identity
  const acceptedAt = acceptedAtOf(stamp)
  const { values, derived } = withDerived(source, acceptedAt)
  const document: SourceDocument = {
    _id: id,
    ...names,
    ...values,
    acceptedAt,
    status: 'TRANSCRIBED',
    wordCount: 0,
    quoteCount: 0,
    meta: {
      version: UNWRITTEN,
      listKey: listKeyOf(identity.tenant, acceptedAt, id),
      stamp,
      ...derived,
      insertedBy,
      ...(digest !== undefined && { digest }),
    },
  }
  return { document, changed: true, advanced: true }
}

/** Makes the draft of a quote that is not stored. */
export function newQuote(
  { id, sourceId, cover, index }: QuoteContext & { id: string; sourceId: string },
  input: QuoteValues,
  { id: insertedBy, stamp }: RequestStamp,
): QuoteDraft {
  const { values, derived } = withDerivedScore(input)
  const document: QuoteDocument = {
    _id: id,
    sourceId,
    position: positionAt(stamp, index),
    ...values,
    wordCount: UNCOUNTED,
    meta: { version: UNWRITTEN, stamp, ...derived, insertedBy, ...(cover > 0 && { cover }) },
  }
  return { document, changed: true, advanced: true }
}

/** A stamp has 16 digits until the year 2286. The setting `MAX_QUOTES` keeps an index within six digits. */
const STAMP_DIGITS = 16
const INDEX_DIGITS = 6

/** Positions sort as text: by acceptance, then by the order in the request. */
export function positionAt(stamp: number, index: number): string {
  return `${String(stamp).padStart(STAMP_DIGITS, '0')}.${String(index).padStart(INDEX_DIGITS, '0')}`
}

/** Stamps are microseconds since 1970, so a stamp is also the moment of acceptance. */
export function acceptedAtOf(stamp: number): Date {
  return new Date(Math.floor(stamp / 1000))
}

type WithDerived<Values> = { values: Values; derived: { derived?: string[] } }

/** Adds derived fields of a source: the date of acceptance, and the score from the votes. */
export function withDerived(input: SourceValues, acceptedAt: Date): WithDerived<SourceValues & { createdAt: Date }> {
  const { values, derived } = withDerivedScore({ ...input, createdAt: input.createdAt ?? acceptedAt })
  if (input.createdAt !== undefined) return { values, derived }
  return { values, derived: { derived: ['createdAt', ...(derived.derived ?? [])] } }
}

/** Adds the score from the votes, if no request contains one. */
export function withDerivedScore<Values extends QuoteValues | SourceValues>(values: Values): WithDerived<Values> {
  const score = effectiveScore(values)
  if (values.score !== undefined || score === undefined) return { values, derived: {} }
  return { values: { ...values, score }, derived: { derived: ['score'] } }
}

/** 96 bits: texts do not collide by chance. A tenant that makes texts collide harms its own quotes only. */
const TEXT_HASH_LENGTH = 16

/** Returns the digest of a text: its length in UTF-16 units, and a hash. */
export function textDigestOf(text: string): string {
  return `${text.length}.${hash('sha256', text, 'base64url').slice(0, TEXT_HASH_LENGTH)}`
}
