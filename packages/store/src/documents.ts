// The documents in MongoDB, by collection, and the stages that a thread goes through before it is
// stored: request, draft, plan, round. Also what stored documents have of requests: fields, their
// stamps and derived fields, and positions.
import {
  type DeletionScope,
  effectiveScore,
  type Outcome,
  type QuoteFields,
  type Redacts,
  type SourceFields,
  type STORED_STATUS,
  type Thread,
  type ThreadAnswer,
  type Votes,
} from '@sluice/contract'
import type { Document, ObjectId } from 'mongodb'

type WithDates<Fields> = { [Name in keyof Fields]: Name extends 'createdAt' ? Date : Fields[Name] }

/**
 * The fields of a source that requests can change: all but `service` and `externalId`, which
 * identify the source.
 */
export type SourceValues = Omit<WithDates<SourceFields>, 'service' | 'externalId'>

export type QuoteValues = WithDates<QuoteFields>

/**
 * When the fields of a document were accepted, in µs. `stamp` is the newest fields' time, `stamps`
 * has the time of each older field.
 */
export interface Stamps {
  stamp: number
  stamps?: Record<string, number>
}

interface Meta extends Stamps {
  /**
   * Changes with each write, except the renewal of a reservation. A guarded update takes effect
   * only if the stored version is still the one that was read.
   */
  version: ObjectId
  /**
   * The names of fields that no request contained: a score from votes, a date from the acceptance.
   */
  derived?: string[]
  /**
   * The id of the request that inserted the document. `changedBy`: the id of the last request that
   * changed it.
   */
  insertedBy: string
  changedBy?: string
}

/** The identity of a batch: its writer, and its number among the writer's batches, from 1. */
export interface WriterBatch {
  writer: string
  batch: number
}

/**
 * A token of this age suggests that its writer has crashed. Any process that meets the source then
 * sums its quotes, at most once in this time, until the token is removed. A dead writer's job is
 * delivered again within this time.
 */
export const STALE_MS = 10_000

/**
 * The mark of a writer in a source, for one request. The token is open while its batch is above its
 * writer's watermark. Then the totals may be ahead of the quotes or, in a reserved source, behind
 * them.
 */
export interface WriterToken extends WriterBatch {
  request: string
  since: Date
  /**
   * Present if the writer reserved the source for a sum. Other processes then do not open the
   * source. Changes with each renewal.
   */
  excludes?: ObjectId
  /** When the quotes were last summed since the token became stale. */
  summed?: Date
}

/**
 * A document of the collection `writers`: the watermark of a writer's name. A process takes a new
 * name after it has abandoned a batch.
 */
export interface WriterDocument {
  _id: string
  /** All batches up to this one have ended, and no sum missed their quotes. */
  watermark: number
}

/**
 * How long marks of deletions are kept. Failed jobs are kept for 30 days, so no older request can
 * arrive after that.
 */
export const DELETIONS_MS = 31 * 24 * 3_600_000

/**
 * A source remembers at most this number of quotes as deleted one by one. Each takes 34 bytes of
 * the source, and adds a condition to each sum and page of its quotes.
 */
export const MOST_SINGLE = 10_000

/** What a tenant has deleted of a source. */
export interface Deleted {
  /** Every field and quote with this stamp or an older one is deleted. 0 for none. */
  stamp: number
  /** The stamps of quotes that were deleted singly, by quote id without the source's id in front. */
  ofQuotes?: Record<string, number>
}

/** What was deleted of a source, and the last deletion of it. */
export interface DeletionMark extends Deleted {
  tenant: string
  request: string
  /** The number of quotes that the last deletion removed. Absent if it found nothing. */
  quotes?: number
  /**
   * Present until the last deletion has ended: its stamp, the source's cover, and the number of
   * quotes that were there, to subtract what is left.
   */
  before?: { stamp: number; cover?: number; quotes?: number }
  /**
   * What other tenants have deleted, by the tenants' hashes. A deletion may name any id, so nobody
   * knows whose a tombstone is. What a tenant deletes counts only for its own requests.
   */
  others?: Record<string, Deleted>
}

/**
 * A source, or a tombstone: what stays of a deleted source until a later post replaces it. A
 * tombstone has no field by which a list or a look-up finds it.
 */
export interface SourceOrTombstone {
  _id: string
  tenant?: string
  /** The words of all stored quotes, and their number. Exact while no token is open. */
  wordCount: number
  quoteCount: number
  meta: {
    version: ObjectId
    stamp?: number
    /**
     * A stamp that counts for all quotes: for each field with an older stamp, unless the quote's
     * own cover is as high.
     */
    cover?: number
    tokens?: WriterToken[]
    /**
     * Changes before each sum. If a writer opened the source before the sum, it finds another
     * epoch, and recounts.
     */
    epoch?: ObjectId
    /**
     * The digest of the last request, if that request contained all quotes. If the next request
     * equals it, only stamps change.
     */
    digest?: string
    deletion?: DeletionMark
    /**
     * What was erased of the source's fields, by the hashes of the speakers for whom. While one of
     * them is suppressed, no post brings it back: a post may repeat words without their quotes.
     */
    erased?: Record<string, Redacts>
  }
}

/** The marks of a source that count for its quotes. */
export type SourceMarks = Pick<SourceOrTombstone['meta'], 'cover' | 'deletion'>

export interface SourceDocument extends SourceValues, SourceOrTombstone {
  tenant: string
  service: SourceFields['service']
  externalId: string
  createdAt: Date
  /** The earliest moment at which a request for this source was accepted. */
  acceptedAt: Date
  status: typeof STORED_STATUS
  meta: SourceOrTombstone['meta'] &
    Meta & {
      /**
       * The tenant's hash, `acceptedAt` and `_id` in one text, which sorts a tenant's sources by
       * date.
       */
      listKey: string
    }
}

/**
 * Returns whether this is a source, and no tombstone. A worker of a release without deletions may
 * add a post's fields to a tombstone, with null as tenant and names. That is still a tombstone.
 */
export function isLive(source: SourceOrTombstone): source is SourceDocument {
  return typeof source.tenant === 'string'
}

export interface QuoteDocument extends QuoteValues {
  _id: string
  sourceId: string
  /**
   * A request's stamp (16 digits), `.`, and the quote's index in the request (6 digits). If several
   * requests contain the quote, the smallest of these texts.
   */
  position: string
  wordCount: number
  meta: Meta & {
    /**
     * The highest cover of the source that the quote's own stamps include. Only a higher cover of
     * the source raises the stamps.
     */
    cover?: number
    /**
     * Shows whether a posted text equals the stored one, without reading that. A tool that changes
     * the text must remove the digest.
     */
    textDigest?: string
  }
}

export type QuoteWithoutText = Omit<QuoteDocument, 'text'>

interface Accepted {
  /** Unique to the request, and the same each time that the request is delivered. */
  id: string
  tenant: string
  /**
   * The request's place in the order of acceptance, in µs since 1970. Requests for different
   * sources may share it.
   */
  stamp: number
  /** An earlier delivery may have written some of the request. */
  redelivered: boolean
  /** Absent if the tenant has none. */
  suppressions?: SuppressedSpeakers
}

export interface PostRequest extends Accepted {
  thread: Thread
  /**
   * Equal threads have equal digests. Without a digest, repeats of the thread are not recognised.
   */
  digest?: string
}

/** The suppressions of a tenant: speakers whose quotes are stored as redacted. */
export interface SuppressedSpeakers {
  hashOf(speaker: string): string
  /** `speaker`: a hash. */
  has(speaker: string, service: string): boolean
}

export interface DeleteRequest extends Accepted {
  deletes: DeletionScope
}

export type StoreRequest = PostRequest | DeleteRequest

/** A quote of a request: its fields, and the ids and the position that follow from the request. */
export interface InputQuote {
  names: Pick<QuoteDocument, '_id' | 'sourceId' | 'position'>
  values: QuoteValues
  /** Present if the quote was redacted, because its speaker is suppressed. */
  isSuppressed?: true
}

/**
 * A request as the store uses it: with the ids of its documents, and with dates instead of texts.
 */
export interface InputThread extends Pick<PostRequest, 'id' | 'stamp' | 'redelivered' | 'digest'> {
  names: Pick<SourceDocument, '_id' | 'tenant' | 'service' | 'externalId'>
  source: SourceValues
  quotes: InputQuote[]
  /** Present if the request only redacts what is stored: of the quotes, or also of the source. */
  redacts?: Redacts
  /** What it erases of the source, by speaker: see `meta.erased`. */
  erased?: SourceDocument['meta']['erased']
  isSuppressed?: (speaker: string) => boolean
}

/**
 * A write of a document: an insert, or an update that takes effect only if the stored version is
 * still the one that was read.
 */
export interface GuardedWrite<Stored = SourceOrTombstone | QuoteWithoutText> {
  /**
   * `stored`: the document as it was read, absent if none was stored. `document`: the document as
   * it is to be stored.
   */
  stored?: Stored
  document: Stored
  /** The update, if it does not replace the whole document. */
  u?: Document
}

/** A source or a quote as this round will store it. */
export interface Draft<Stored> extends GuardedWrite<Stored> {
  /** Whether the document differs from the stored one in a field or in the position. */
  changed: boolean
  /** Whether the document needs a write: it changed, or a field has a later stamp than before. */
  advanced: boolean
  /** The outcome to answer to the last request that was merged. */
  outcome: Outcome
}

export type SourceDraft = Draft<SourceDocument>
export type QuoteDraft = Draft<QuoteDocument>

/**
 * A thread as it was read. All threads of a round may share one map `quotes`. The map has the
 * stored quotes that the requests name, but not the quotes of repeats.
 */
export interface StoredThread {
  source?: SourceOrTombstone | undefined
  quotes: ReadonlyMap<string, QuoteDocument>
}

/** The writes that store all of the thread's requests, and the outcomes to answer. */
export interface ThreadPlan {
  source: Draft<SourceOrTombstone>
  /** Every quote that the requests name, as it will be stored. */
  quotes: ReadonlyMap<string, QuoteDraft>
  /**
   * The quotes to write. A text that is new has the word count `UNCOUNTED` until the round has
   * counted it.
   */
  quoteWrites: readonly QuoteDraft[]
  /** The outcomes of each request, in their order. Quotes are in the order of the request. */
  outcomes: { source: Outcome; quotes: Outcome[] }[]
}

export type StoredAnswer = Pick<ThreadAnswer, 'source' | 'quotes'>

/** `absent`: nothing was deleted. */
export interface DeletedAnswer {
  outcome: 'deleted' | 'absent'
  /** The number of quotes that were removed. */
  quotes: number
}

export type StoreAnswer = StoredAnswer | DeletedAnswer

/** All requests of a batch for one thread. */
export interface ThreadWork {
  id: string
  /** In the order of their stamps. */
  requests: InputThread[]
  /**
   * Whether an earlier round may have changed the thread. Then it stays in the batch until it is
   * stored.
   */
  mayHaveChanged: boolean
  /** Whether an earlier round may have stored quotes of the thread. */
  mayHaveQuotes: boolean
  /**
   * Whether to read the source with majority: an answer without a write must not depend on a source
   * that may be rolled back.
   */
  readsMajority: boolean
  /** The number of rounds in which another process wrote first. */
  refusals: number
  isStored: boolean
}

export interface ThreadRound {
  work: ThreadWork
  stored: StoredThread
  plan: ThreadPlan
}

/** A thread whose source is open, so that its quotes may be written. */
export interface OpenThread extends ThreadRound {
  source: SourceOrTombstone
  /**
   * Whether the source already has its final totals and fields. If not, it is reserved, and they
   * are committed after the quotes.
   */
  isFinal: boolean
}

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
