// Looks up stored sources and quotes for people, over all tenants. Never writes.
import type { FindAnswer, FindQuery, Hit } from '@sluice/contract'
import { HITS_SHOWN, SERVICES } from '@sluice/contract'
import { keyCollection } from '@sluice/credentials/keys'
import { sourceIdIn, sourceIdOf } from '@sluice/store/ids'
import {
  CommandFailedError,
  chunksOf,
  IDS_PER_QUERY,
  PRIMARY_MAJORITY,
  type QuoteDocument,
  type SourceDocument,
  seenQuote,
  withinTime,
} from '@sluice/store/read'
import type { Db } from 'mongodb'

type FoundSource = Pick<
  SourceDocument,
  '_id' | 'tenant' | 'service' | 'externalId' | 'acceptedAt' | 'meta'
>
type FoundQuote = Pick<QuoteDocument, '_id' | 'sourceId' | 'externalId' | 'meta'>

const META = { 'meta.insertedBy': 1, 'meta.changedBy': 1, 'meta.deletion': 1 } as const
const SOURCE_FIELDS = { tenant: 1, service: 1, externalId: 1, acceptedAt: 1, ...META } as const

const SOURCE_ID = /^[\w-]{24}$/
const QUOTE_ID = /^[\w-]{48}$/

/**
 * Makes a function that looks up stored threads. It needs no index of names: a source's id follows
 * from tenant, service and externalId, so it computes the id for every tenant and service.
 */
export function createFindStored(db: Db) {
  const sources = db.collection<SourceDocument>('sources', PRIMARY_MAJORITY)
  const quotes = db.collection<QuoteDocument>('quotes', PRIMARY_MAJORITY)

  async function find(
    { q: text, tenant, service }: FindQuery,
    signal: AbortSignal,
  ): Promise<Hit[]> {
    const ofWhom = {
      ...(tenant !== undefined && { tenant }),
      ...(service !== undefined && { service }),
    }

    async function byIds(ids: readonly string[]): Promise<FoundSource[]> {
      const found: FoundSource[] = []
      const options = { projection: SOURCE_FIELDS, limit: HITS_SHOWN, signal }
      // Not a deleted source: it has no tenant any more.
      const live = { tenant: { $type: 'string' } } as const
      // One query after the other, so that a look-up occupies only one connection.
      for (const some of chunksOf(ids, IDS_PER_QUERY))
        if (found.length < HITS_SHOWN)
          found.push(
            ...(await sources
              .find<FoundSource>({ _id: { $in: some }, ...live, ...ofWhom }, options)
              .toArray()),
          )
      // A tombstone, which a deletion leaves, has only an id.
      return found.filter(({ acceptedAt }) => acceptedAt !== undefined)
    }

    /**
     * Returns the ids that a source with this externalId would have, for every tenant and service
     * of the query.
     */
    async function idsOfName(): Promise<string[]> {
      const tenants = new Set(tenant === undefined ? [] : [tenant])
      const keys = keyCollection(db).find(
        { role: 'importer' },
        { projection: { tenant: 1 }, signal },
      )
      if (tenant === undefined) for await (const key of keys) tenants.add(key.tenant)
      const services = service === undefined ? SERVICES : [service]
      return [...tenants].flatMap((owner) =>
        services.map((one) => sourceIdOf(owner, { service: one, externalId: text })),
      )
    }

    const ids = await idsOfName()
    const found = await byIds(SOURCE_ID.test(text) ? [...ids, text] : ids)
    const hits = found.map(sourceHit)
    if (!QUOTE_ID.test(text)) return hits
    const quote = { _id: text, sourceId: sourceIdIn(text) }
    const [source] = await byIds([quote.sourceId])
    if (source === undefined) return hits
    const stored = await quotes.findOne(quote, { signal })
    const seen = stored && seenQuote(stored, source)
    return seen ? [...hits, quoteHit(seen, source)] : hits
  }

  /**
   * If MongoDB is unavailable, does not throw, but adds a note, so that the rest of the look-up
   * continues.
   */
  return async (
    query: FindQuery,
    gone: AbortSignal,
  ): Promise<Pick<FindAnswer, 'hits' | 'notes'>> => {
    try {
      return { hits: await withinTime(gone, (signal) => find(query, signal)), notes: [] }
    } catch (error) {
      if (gone.aborted || !(error instanceof CommandFailedError)) throw error
      return {
        hits: [],
        notes: ['MongoDB is unavailable or too slow: what is stored was not looked up.'],
      }
    }
  }
}

function sourceHit(source: FoundSource): Hit {
  return { kind: 'source', ...hitOf(source, source), acceptedAt: source.acceptedAt.toISOString() }
}

function quoteHit(quote: FoundQuote, source: FoundSource): Hit {
  const { sourceId, externalId } = quote
  return {
    kind: 'quote',
    ...hitOf(quote, source),
    sourceId,
    ...(externalId !== undefined && { quote: externalId }),
  }
}

/**
 * Describes a hit. `insertedBy` and `changedBy` name requests: by the job's id or, if the job has
 * several threads, by `ID.PLACE`.
 */
function hitOf(
  { _id, meta }: FoundSource | FoundQuote,
  { tenant, service, externalId }: FoundSource,
) {
  const { insertedBy, changedBy } = meta
  const name = `${service}/${externalId}`
  return {
    id: _id,
    tenant,
    state: 'stored' as const,
    name,
    insertedBy,
    ...(changedBy !== undefined && { changedBy }),
  }
}
