// The door `@sluice/store/find`: searches stored sources and quotes for operators, over all tenants. Never writes.
import {
  type FindQuery,
  HITS_PER_SEARCH,
  type Hit,
  type PageQuery,
  SERVICES,
  type SourcePage,
  wantedOf,
} from '@sluice/contract'
import type { Db, Filter } from 'mongodb'
import type { QuoteDocument, SourceDocument } from './documents.ts'
import { sourceIdOf } from './ids.ts'
import { keyCollection } from './keys/key.ts'
import { IDS_PER_QUERY } from './mongodb/commands.ts'
import { createSourceReads, StoreAwayError, withinTime } from './read-source.ts'

export { StoreAwayError }

type FoundSource = Pick<SourceDocument, '_id' | 'tenant' | 'service' | 'externalId' | 'acceptedAt' | 'meta'>
type FoundQuote = Pick<QuoteDocument, '_id' | 'sourceId' | 'externalId' | 'meta'>

const META = { 'meta.insertedBy': 1, 'meta.changedBy': 1 } as const
const SOURCE_FIELDS = { tenant: 1, service: 1, externalId: 1, acceptedAt: 1, ...META } as const
const QUOTE_FIELDS = { sourceId: 1, externalId: 1, ...META } as const

const SOURCE_ID = /^[\w-]{24}$/
const QUOTE_ID = /^[\w-]{48}$/
/** No text that begins with a prefix sorts after the prefix and this character. */
const LAST = '\u{10FFFF}'

const QUOTES_LEFT_OUT =
  'Without SEARCH_QUOTES, stored quotes are not found, nor stored sources by the beginning of their externalId.'

/**
 * Makes the search of what is stored. The ids of sources follow from their names, so a source of a whole externalId needs
 * no index: its id is computed for every tenant and service.
 *
 * @param searchesQuotes the workers have created the indexes of externalIds (`SEARCH_QUOTES`).
 */
export function createFindStored(db: Db, { searchesQuotes }: { searchesQuotes: boolean }) {
  const options = { readPreference: 'primary', readConcern: { level: 'majority' } } as const
  const sources = db.collection<SourceDocument>('sources', options)
  const quotes = db.collection<QuoteDocument>('quotes', options)

  async function findSources(filter: Filter<SourceDocument>, signal: AbortSignal): Promise<FoundSource[]> {
    const how = { projection: SOURCE_FIELDS, limit: HITS_PER_SEARCH, signal }
    return sources.find<FoundSource>(filter, how).toArray()
  }

  async function byIds(ids: readonly string[], signal: AbortSignal): Promise<FoundSource[]> {
    const found: FoundSource[] = []
    // One query at a time: a search occupies one connection.
    for (let at = 0; at < ids.length && found.length < HITS_PER_SEARCH; at += IDS_PER_QUERY)
      found.push(...(await findSources({ _id: { $in: ids.slice(at, at + IDS_PER_QUERY) } }, signal)))
    return found
  }

  async function idsOfName(externalId: string, query: FindQuery, signal: AbortSignal): Promise<string[]> {
    const services = query.service === undefined ? SERVICES : [query.service]
    const keys = keyCollection(db).find({ role: 'importer' }, { projection: { tenant: 1 }, signal })
    const tenants = new Set(query.tenant === undefined ? [] : [query.tenant])
    if (query.tenant === undefined) for await (const { tenant } of keys) tenants.add(tenant)
    return [...tenants].flatMap((tenant) => services.map((service) => sourceIdOf(tenant, { service, externalId })))
  }

  async function findQuotes(filter: Filter<QuoteDocument>, signal: AbortSignal): Promise<FoundQuote[]> {
    return quotes.find<FoundQuote>(filter, { projection: QUOTE_FIELDS, limit: HITS_PER_SEARCH, signal }).toArray()
  }

  async function search(query: FindQuery, signal: AbortSignal): Promise<Hit[]> {
    const { text, isPrefix } = wantedOf(query)
    const matches = (source: FoundSource) =>
      (query.tenant === undefined || query.tenant === source.tenant) &&
      (query.service === undefined || query.service === source.service)
    const externalId = isPrefix ? { $gte: text, $lt: text + LAST } : text
    const ids = isPrefix ? [] : await idsOfName(text, query, signal)
    if (SOURCE_ID.test(text)) ids.push(text)
    const found = await byIds(ids, signal)
    if (isPrefix && searchesQuotes) found.push(...(await findSources({ externalId }, signal)))
    const foundQuotes = QUOTE_ID.test(text) ? await findQuotes({ _id: text }, signal) : []
    if (searchesQuotes) foundQuotes.push(...(await findQuotes({ externalId }, signal)))
    const sourceIds = new Set(foundQuotes.map(({ sourceId }) => sourceId))
    const ofQuotes = new Map((await byIds([...sourceIds], signal)).map((source) => [source._id, source]))
    return [
      ...found.filter(matches).map(sourceHit),
      ...foundQuotes.flatMap((quote) => {
        const source = ofQuotes.get(quote.sourceId)
        return source !== undefined && matches(source) ? [quoteHit(quote, source)] : []
      }),
    ]
  }

  /** Never throws because MongoDB is away: the rest of a search goes on, and the note says so. */
  return async (query: FindQuery, gone: AbortSignal): Promise<{ hits: Hit[]; note?: string }> => {
    try {
      const hits = await withinTime(gone, (signal) => search(query, signal))
      return searchesQuotes ? { hits } : { hits, note: QUOTES_LEFT_OUT }
    } catch (error) {
      if (gone.aborted || !(error instanceof StoreAwayError)) throw error
      return { hits: [], note: 'MongoDB is away or too slow: what is stored was not searched.' }
    }
  }
}

function sourceHit({ _id, tenant, service, externalId, acceptedAt, meta }: FoundSource): Hit {
  const about = { kind: 'source', id: _id, tenant, state: 'stored', name: `${service}/${externalId}` } as const
  return { ...about, acceptedAt: acceptedAt.toISOString(), ...jobsOf(meta) }
}

function quoteHit({ _id, sourceId, externalId, meta }: FoundQuote, { tenant, service, ...source }: FoundSource): Hit {
  const about = { kind: 'quote', id: _id, tenant, state: 'stored', sourceId } as const
  const name = `${service}/${source.externalId}`
  return { ...about, name, ...(externalId !== undefined && { quote: externalId }), ...jobsOf(meta) }
}

/** A thread of a job with several is named by the job and its place: `ID.PLACE`. */
function jobsOf({ insertedBy, changedBy }: Pick<SourceDocument['meta'], 'insertedBy' | 'changedBy'>) {
  return { insertedBy, ...(changedBy !== undefined && { changedBy }) }
}

/** The effect of one request on the quotes of a source: those that it inserted, and those that it changed last. */
export interface Writing {
  /** The job, or `ID.PLACE` of a job with several threads. */
  request: string
  inserted: number
  changed: number
  /** The last effect on the source itself. */
  source?: 'created' | 'changed'
}

export type ReadThread = ReturnType<typeof createReadThread>

/** The most pairs of inserting and changing request that are read: those that began last. */
const PAIRS = 1_000

/** Makes a function that reads a page of a stored thread, with the requests that wrote it, the newest first. */
export function createReadThread(db: Db) {
  const { readSource } = createSourceReads(db)

  async function readWritings(id: string, signal: AbortSignal): Promise<Writing[]> {
    const writings = new Map<string, Writing>()
    const of = (request: string) => {
      const writing = writings.get(request) ?? { request, inserted: 0, changed: 0 }
      writings.set(request, writing)
      return writing
    }
    const pairs = db
      .collection('quotes')
      .aggregate<{ _id: { by: string; changedBy?: string }; quotes: number }>(
        [
          { $match: { sourceId: id } },
          { $group: { _id: { by: '$meta.insertedBy', changedBy: '$meta.changedBy' }, quotes: { $sum: 1 } } },
          { $sort: { _id: -1 } },
          { $limit: PAIRS },
        ],
        { signal, allowDiskUse: true },
      )
    for await (const { _id, quotes } of pairs) {
      of(_id.by).inserted += quotes
      if (_id.changedBy != null) of(_id.changedBy).changed += quotes
    }
    const source = await db.collection<SourceDocument>('sources').findOne({ _id: id }, { projection: META, signal })
    if (source?.meta.changedBy !== undefined) of(source.meta.changedBy).source = 'changed'
    if (source !== null) of(source.meta.insertedBy).source = 'created'
    return [...writings.values()].sort((one, other) => (one.request < other.request ? 1 : -1))
  }

  /** Undefined if the thread is not stored. @throws {StoreAwayError} */
  return async (
    tenant: string,
    id: string,
    query: PageQuery,
    gone: AbortSignal,
  ): Promise<(SourcePage & { writings: Writing[] }) | undefined> => {
    const page = await readSource(tenant, id, query, gone)
    return page && { ...page, writings: await withinTime(gone, (signal) => readWritings(id, signal)) }
  }
}
