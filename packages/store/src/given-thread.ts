import type { QuoteFields } from '@sluice/contract'
import type { QuoteValues, SourceValues } from './documents.ts'
import { quoteIdsOf, sourceIdOf } from './ids.ts'
import type { SourceName } from './merge-source.ts'
import type { Said, StoreRequest } from './store-request.ts'

/** A request in the store's own terms: named, with ids and dates. */
export interface GivenThread extends Said {
  name: SourceName
  source: SourceValues
  quotes: QuoteValues[]
  quoteIds: string[]
  digest?: string
}

/** Brings an accepted request into the store's own terms. */
export function givenThread({ id, tenant, stamp, redelivered, thread, digest }: StoreRequest): GivenThread {
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
