import type { QuoteFields, SourceFields } from '@sluice/contract'
import type { ObjectId } from 'mongodb'

type WithDates<Fields> = { [Name in keyof Fields]: Name extends 'createdAt' ? Date : Fields[Name] }

/** What a request may say of a source, as it is stored; its service and externalId name it and never change. */
export type SourceValues = Omit<WithDates<SourceFields>, 'service' | 'externalId'>

/** What a request may say of a quote, as it is stored. */
export type QuoteValues = WithDates<QuoteFields>

/**
 * When a document's fields were said, as order stamps (µs; one order over all requests): `stamp` is the newest, and `stamps`
 * holds one for each field that is older than it.
 */
export interface Stamps {
  stamp: number
  stamps?: Record<string, number>
}

interface Meta extends Stamps {
  /** New with each write; a write is guarded by the one it read. */
  version: ObjectId
  /** Fields that hold what follows from others, for readers; no request ever said them. */
  derived?: string[]
  insertedBy: string
  changedBy?: string
}

/**
 * A request that named itself before its first quote write: until its batch is closed or the token is taken off, the source may disagree with its quotes.
 */
export interface WriterToken extends WriterBatch {
  request: string
  since: Date
}

/** One batch of a writer, whose tokens stand in the sources that it opened. */
export interface WriterBatch {
  writer: string
  /** Counted from 1. */
  batch: number
}

/** A document of the collection `writers`: a process that stores requests, and how far it has got. */
export interface WriterDocument {
  _id: string
  since: Date
  /** All that its batches up to this one wrote is whole. */
  closed: number
  /** Sources that others came upon before their batch was closed: it is closed when they are summed. */
  contested: { batch: number; source: string }[]
  meta: { version: ObjectId }
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
  /** Words of all stored quotes; exact unless a token in `meta.writers` is of a batch that is not closed. */
  wordCount: number
  /** Stored quotes; exact when `wordCount` is. */
  quoteCount: number
  meta: Meta & {
    /** Every field of every quote that had not reckoned with it (`meta.cover` there) counts as said at this stamp at the earliest. */
    cover?: number
    writers?: WriterToken[]
    /** The digest of the last request, where the thread is all that it said and no more: saying it again moves nothing but stamps. */
    digest?: string
  }
}

/** A document of the collection `quotes`. */
export interface QuoteDocument extends QuoteValues {
  _id: string
  sourceId: string
  wordCount: number
  meta: Meta & {
    /** Covers of the source up to this stamp are reckoned in this quote's own stamps. */
    cover?: number
  }
}
