// The documents in MongoDB, by collection, and the stages of a thread on its way there: request,
// draft, plan, round.
import type {
  Outcome,
  QuoteFields,
  SourceFields,
  STORED_STATUS,
  Thread,
  ThreadAnswer,
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
 * When the fields of a document were accepted, in µs: `stamp` of the newest fields, `stamps` of
 * each older field.
 */
export interface Stamps {
  stamp: number
  stamps?: Record<string, number>
}

interface Meta extends Stamps {
  /**
   * New with each write, except the renewal of a reservation. A guarded update takes effect only if
   * the stored version is still the version that was read.
   */
  version: ObjectId
  /**
   * The names of fields that no request contained: a score from votes, a date from the acceptance.
   */
  derived?: string[]
  /**
   * The id of the request that inserted the document. `changedBy`: of the last one that changed it.
   */
  insertedBy: string
  changedBy?: string
}

/**
 * The identity of a batch: its writer, and its number among the writer's batches, counted from 1.
 */
export interface WriterBatch {
  writer: string
  batch: number
}

/**
 * A token this old counts as its writer's crash: whoever meets the source sums its quotes, at most
 * once in this time, until the token is gone. A dead writer's job is delivered again within this
 * time.
 */
export const STALE_MS = 10_000

/**
 * The mark of a writer in a source, for one request. While the batch is above the watermark of its
 * writer, the token is open: the totals may be ahead of the quotes or, in a reserved source, behind
 * them.
 */
export interface WriterToken extends WriterBatch {
  request: string
  since: Date
  /**
   * Present if the writer reserved the source for a sum: others then do not open the source. New
   * with each renewal.
   */
  excludes?: ObjectId
  /** When the quotes were last summed, since the token became stale. */
  summed?: Date
}

/**
 * A document of the collection `writers`: the watermark of one writer name. A process takes a new
 * name after it abandoned a batch.
 */
export interface WriterDocument {
  _id: string
  /** All batches of the writer up to this one have ended, and no sum missed a quote of them. */
  watermark: number
}

export interface SourceDocument extends SourceValues {
  _id: string
  tenant: string
  service: SourceFields['service']
  externalId: string
  createdAt: Date
  /** The earliest moment at which a request for this source was accepted. */
  acceptedAt: Date
  status: typeof STORED_STATUS
  /**
   * The words of all stored quotes, and the number of these quotes. Exact while no token is open.
   */
  wordCount: number
  quoteCount: number
  meta: Meta & {
    /** The tenant's hash, `acceptedAt` and `_id` in one text: sorts a tenant's sources by date. */
    listKey: string
    /**
     * A stamp of all quotes. It counts for fields with an older stamp, except in quotes whose own
     * cover is as high.
     */
    cover?: number
    tokens?: WriterToken[]
    /**
     * Set before each sum. A writer that opened the source before the sum finds another epoch, and
     * recounts.
     */
    epoch?: ObjectId
    /**
     * The digest of the last request, if it contained all quotes: an equal request then moves only
     * stamps.
     */
    digest?: string
  }
}

export interface QuoteDocument extends QuoteValues {
  _id: string
  sourceId: string
  /**
   * A request's stamp (16 digits), `.`, and the quote's index in it (6 digits): the smallest of all
   * its requests.
   */
  position: string
  wordCount: number
  meta: Meta & {
    /**
     * The highest cover of the source that is already part of the quote's own stamps. Only a higher
     * cover of the source raises these stamps.
     */
    cover?: number
    /**
     * Serves to compare a text with the stored one without reading the stored one. A tool that
     * changes the text must remove the digest.
     */
    textDigest?: string
  }
}

export type QuoteWithoutText = Omit<QuoteDocument, 'text'>

export interface StoreRequest {
  /** Unique to the request, and the same each time it is delivered. */
  id: string
  tenant: string
  /**
   * The place in the one order of acceptance, in µs since 1970. Only requests for different sources
   * may share it.
   */
  stamp: number
  /** An earlier delivery may have written a part of the request. */
  redelivered: boolean
  thread: Thread
  /** Equal threads have equal digests. Without a digest, repeats are not recognised. */
  digest?: string
}

/** A quote of a request: its fields, and the names and the position that the request gives it. */
export interface InputQuote {
  names: Pick<QuoteDocument, '_id' | 'sourceId' | 'position'>
  values: QuoteValues
}

/**
 * A request in the store's own terms: with the ids of its documents, and with dates in place of
 * texts.
 */
export interface InputThread extends Pick<StoreRequest, 'id' | 'stamp' | 'redelivered' | 'digest'> {
  names: Pick<SourceDocument, '_id' | 'tenant' | 'service' | 'externalId'>
  source: SourceValues
  quotes: InputQuote[]
}

/**
 * A write of a document: an insert, or an update that takes effect only if the stored version is
 * the one that was read.
 */
export interface GuardedWrite<Stored = SourceDocument | QuoteDocument> {
  /** The document as it was read; absent if none was stored. `document`: as it is to be stored. */
  stored?: Stored
  document: Stored
  /** The update, if it does not replace the whole document. */
  u?: Document
}

/** A source or a quote as this round will store it. */
export interface Draft<Stored> extends GuardedWrite<Stored> {
  /** The document differs from the stored one in a field, or in the position. */
  changed: boolean
  /** The document needs a write: it changed, or a field has a later stamp than before. */
  advanced: boolean
  /** What to answer to the last request that was merged. */
  outcome: Outcome
}

export type SourceDraft = Draft<SourceDocument>
export type QuoteDraft = Draft<QuoteDocument>

/**
 * A thread as it was read. All threads of a round may share one map `quotes`. It has the stored
 * quotes that the requests name, without the quotes of repeats.
 */
export interface StoredThread {
  source?: SourceDocument | undefined
  quotes: ReadonlyMap<string, QuoteDocument>
}

/** The writes that put all of the requests into the store, and the outcomes to answer. */
export interface ThreadPlan {
  source: SourceDraft
  /** Every quote that the requests name, as it will be stored. */
  quotes: ReadonlyMap<string, QuoteDraft>
  /**
   * The quotes to write. A text that is new has the word count `UNCOUNTED` until the round has
   * counted it.
   */
  quoteWrites: readonly QuoteDraft[]
  /** One for each request, in their order, with its quotes in their order. */
  outcomes: { source: Outcome; quotes: Outcome[] }[]
}

export type StoredAnswer = Pick<ThreadAnswer, 'source' | 'quotes'>

/** All requests of a batch for one thread. */
export interface ThreadWork {
  id: string
  /** In the order of their stamps. */
  requests: InputThread[]
  /**
   * An earlier round may have changed the thread, so the thread stays in the batch until it is
   * stored.
   */
  mayHaveChanged: boolean
  /**
   * Read the source with majority: an answer without a write must not depend on a source that is
   * rolled back.
   */
  readsMajority: boolean
  /** The number of rounds in which another process won. */
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
  source: SourceDocument
  /**
   * The source has its final totals and fields. Otherwise it is reserved, and they are committed
   * after the quotes.
   */
  isFinal: boolean
}
