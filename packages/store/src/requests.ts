import type { QuoteFields, SourceFields, Thread } from '@sluice/contract'
import type { QuoteValues, SourceValues } from './documents.ts'
import { quoteIdsOf, sourceIdOf } from './ids.ts'

// An accepted request as the store takes it, and in the store's own terms.

/** One accepted request. */
export interface StoreRequest {
  /** Unique to the request, and the same each time it is delivered. */
  id: string
  tenant: string
  /** Its position in the one order of acceptance, in µs since 1970; unique to the request. */
  stamp: number
  /** An earlier delivery may have written some of it. */
  redelivered: boolean
  thread: Thread
  /** Where it is known: equal threads have equal digests. */
  digest?: string
}

/** What the merge needs to know of a request besides its fields. */
export type RequestStamp = Pick<StoreRequest, 'id' | 'stamp' | 'redelivered'>

/** The parts of a source that name it and never change. */
export interface SourceName {
  id: string
  tenant: string
  service: SourceFields['service']
  externalId: string
}

/** A request with ids and dates. */
export interface InputThread extends RequestStamp {
  name: SourceName
  source: SourceValues
  quotes: QuoteValues[]
  quoteIds: string[]
  digest?: string
}

/** Converts an accepted request into the store's own terms. */
export function inputThread({ id, tenant, stamp, redelivered, thread, digest }: StoreRequest): InputThread {
  const { service, externalId, createdAt, ...values } = thread.source
  const sourceId = sourceIdOf(tenant, thread.source)
  return {
    id,
    stamp,
    redelivered,
    name: { id: sourceId, tenant, service, externalId },
    source: createdAt === undefined ? values : { ...values, createdAt: new Date(createdAt) },
    quotes: thread.quotes.map(quoteValues),
    quoteIds: quoteIdsOf(sourceId, thread.quotes),
    ...(digest !== undefined && { digest }),
  }
}

function quoteValues({ createdAt, ...values }: QuoteFields): QuoteValues {
  return createdAt === undefined ? values : { ...values, createdAt: new Date(createdAt) }
}
