import type { QuoteFields, SourceFields } from '@sluice/contract'
import type { ObjectId } from 'mongodb'

// The documents that Sluice stores in MongoDB, collection by collection.

type WithDates<Fields> = { [Name in keyof Fields]: Name extends 'createdAt' ? Date : Fields[Name] }

/** The fields of a source that a request may give, as they are stored. Its service and externalId name it and never change. */
export type SourceValues = Omit<WithDates<SourceFields>, 'service' | 'externalId'>

/** The fields of a quote that a request may give, as they are stored. */
export type QuoteValues = WithDates<QuoteFields>

/** Order stamps of a document's fields, in µs; one order over all requests. `stamp` is the newest, `stamps` holds one for each older field. */
export interface Stamps {
  stamp: number
  stamps?: Record<string, number>
}

interface Meta extends Stamps {
  /** New with each write. A write is guarded by the version that was read. */
  version: ObjectId
  /** Fields that follow from others and that no request gave. */
  derived?: string[]
  insertedBy: string
  changedBy?: string
}

/** A batch of one writer process. */
export interface WriterBatch {
  writer: string
  /** Counted from 1. */
  batch: number
}

/**
 * A process that writes quotes of the source for a request, or did before it died. While a token stands whose batch is above its writer's watermark,
 * the totals may be ahead of the quotes.
 */
export interface WriterToken extends WriterBatch {
  request: string
  since: Date
  /** The process sums the quotes: until it is done, no other process opens the source. */
  excludes?: true
  /** When the quotes were last summed, since the token became stale. */
  summed?: Date
}

/** A document of the collection `writers`: the state of one process that stores requests. */
export interface WriterDocument {
  _id: string
  since: Date
  /** All of its batches up to this one are complete, and no sum missed a quote of theirs. */
  watermark: number
  /** New each time another process sums a source in which a token of this writer is open. The watermark is raised under the value that was read last. */
  asked: ObjectId
}

/** A document of the collection `sources`. */
export interface SourceDocument extends SourceValues {
  _id: string
  tenant: string
  service: SourceFields['service']
  externalId: string
  createdAt: Date
  /** The earliest moment at which a request for this source was accepted. */
  acceptedAt: Date
  status: 'TRANSCRIBED'
  /** The words of all stored quotes. With open tokens in `meta.writers`, also the words of the quotes that those are about to write. */
  wordCount: number
  /** The stored quotes. Exact when `wordCount` is. */
  quoteCount: number
  meta: Meta & {
    /** No field of a quote is older than this stamp, except in quotes that account for it themselves (`meta.cover` there). */
    cover?: number
    writers?: WriterToken[]
    /** Set before each sum. A process that opened the source before finds another epoch when it settles, and sums in its turn. */
    epoch?: ObjectId
    /** The digest of the last request, where that request gave the whole thread: the same request again moves only stamps. */
    digest?: string
  }
}

/** A document of the collection `quotes`. */
export interface QuoteDocument extends QuoteValues {
  _id: string
  sourceId: string
  wordCount: number
  meta: Meta & {
    /** The quote's own stamps account for covers of the source up to this stamp. */
    cover?: number
  }
}
