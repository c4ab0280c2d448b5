// Looks up a thread or an id for people, over all tenants: among the jobs in the queue, the
// recently completed jobs, the imports, and the stored threads. The queue has no index for this, so
// accepting jobs does not become slower. Also reads a page of a stored thread, with the requests
// that wrote the thread. Never writes.
import {
  type FindAnswer,
  type FindQuery,
  HITS_SHOWN,
  type Hit,
  type PageQuery,
  SERVICES,
  SOURCE_ID_FORM,
  type SourcePage,
} from '@sluice/contract'
import { keyCollection } from '@sluice/credentials/keys'
import { createImports, idsOfThread, isJobId, orUnavailable, type QueueKeys } from '@sluice/queue'
import { quotesOf, sourceIdIn, sourceIdOf } from '@sluice/store/ids'
import {
  CommandFailedError,
  chunksOf,
  createSourceReads,
  findUnfinished,
  IDS_PER_QUERY,
  PRIMARY_MAJORITY,
  type QuoteDocument,
  type SourceDocument,
  seenFilter,
  seenQuote,
  withinTime,
} from '@sluice/store/read'
import type { Redis } from 'ioredis'
import type { Db } from 'mongodb'
import type { FailedJobs } from '../failed/failed-jobs.ts'
import { SHOWN_REASON } from '../failed/reasons.ts'
import { createReadJob, createScanRecent, NEWEST } from '../jobs/jobs.ts'

const FAILED_SHOWN = 100
/**
 * Matching this many ids blocks Redis for about 0.7 ms. With fewer, a look-up needs many round
 * trips.
 */
const IDS_AT_ONCE = 2_500
const MORE_FAILED = 'Not all failed jobs were examined: add filters.'

/** Makes the function that looks up an externalId or an id. */
export function createFind(
  redis: Redis,
  keys: QueueKeys,
  failedJobs: Pick<FailedJobs, 'list'>,
  findStored: ReturnType<typeof createFindStored>,
) {
  const imports = createImports(redis, keys)
  const { readInQueue, readRetained } = createReadJob(redis, keys)
  const scanRecent = createScanRecent(redis, keys)
  let previous: Promise<unknown> = Promise.resolve()

  /**
   * Returns each hit once, but a job that moves during the look-up may be found once in each state.
   * In a process, only one look-up at a time scans Redis, so that they do not block Redis together.
   * Rejects with the signal's reason when the signal aborts.
   *
   * @throws {QueueUnavailableError}
   */
  return async function find(query: FindQuery, signal: AbortSignal): Promise<FindAnswer> {
    const scan = previous.then(() => orUnavailable(findInQueue(query, signal)))
    previous = scan.catch(() => {})
    const isWhole = query.reason === undefined
    const [queue, stored] = await Promise.all([
      scan,
      isWhole ? findStored(query, signal) : { hits: [], notes: [] },
    ])
    signal.throwIfAborted()
    const all = [...queue.hits, ...stored.hits]
    const hits = [...new Map(all.map((hit) => [`${hit.state}/${hit.id}`, hit])).values()]
    const more = hits.length > HITS_SHOWN
    return { hits: hits.slice(0, HITS_SHOWN), more, notes: [...queue.notes, ...stored.notes] }
  }

  /**
   * Searches the states in the order in which jobs pass them, so that a job that moves during the
   * search is found.
   */
  async function findInQueue(
    query: FindQuery,
    signal: AbortSignal,
  ): Promise<Pick<FindAnswer, 'hits' | 'notes'>> {
    const { q, ...filter } = query
    const isWhole = query.reason === undefined
    const hits = isWhole ? [...(await findById(query)), ...(await findInLoad(query, signal))] : []
    const failed = await failedJobs.list({
      filter: { ...filter, externalId: q },
      limit: FAILED_SHOWN,
    })
    for (const { id } of failed.jobs) hits.push(...(await hitsOf(id)))
    if (isWhole) hits.push(...(await findRecent(query, signal)))
    return { hits, notes: failed.next === undefined ? [] : [MORE_FAILED] }
  }

  async function findById(query: FindQuery): Promise<Hit[]> {
    const { q: id } = query
    if (!isJobId(id)) return []
    const hits = await hitsOf(id)
    const retained = await readRetained(id)
    if (retained !== undefined) hits.push(retained.hit)
    const found = await imports.find(id)
    if (found !== undefined) {
      const { tenant, by, received } = found
      hits.push({ kind: 'import', id, tenant, threads: received, ...(by && { keyId: by }) })
    }
    return hits.filter((hit) => isOf(hit, query))
  }

  /**
   * Finds waiting and active jobs by the externalId of their first thread, which Redis matches
   * against their ids.
   */
  async function findInLoad(query: FindQuery, signal: AbortSignal): Promise<Hit[]> {
    const pattern = idsOfThread(query.q)
    const hits: Hit[] = []
    let cursor = '0'
    do {
      const [next, found] = await redis.hscan(
        `${keys.base}load:jobs`,
        cursor,
        'MATCH',
        pattern,
        'COUNT',
        IDS_AT_ONCE,
      )
      cursor = next
      // Each id is followed by what the job adds to the load.
      for (const id of found.filter(isJobId))
        hits.push(...(await hitsOf(id)).filter((hit) => isOf(hit, query)))
    } while (cursor !== '0' && hits.length <= HITS_SHOWN && !signal.aborted)
    return hits
  }

  async function findRecent(query: FindQuery, signal: AbortSignal): Promise<Hit[]> {
    const hits: Hit[] = []
    for (let after = NEWEST; after !== '' && hits.length <= HITS_SHOWN && !signal.aborted; ) {
      const recent = await scanRecent(after, query.q, HITS_SHOWN)
      after = recent.next
      hits.push(...recent.hits.filter((hit) => isOf(hit, query)))
    }
    return hits
  }

  /** Returns a hit for a job in its present state. If both lanes have the job, returns two. */
  async function hitsOf(id: string): Promise<Hit[]> {
    return (await readInQueue(id)).map(({ hit }) => ({
      ...hit,
      ...(hit.reason && { reason: hit.reason.slice(0, SHOWN_REASON) }),
    }))
  }
}

/**
 * Returns whether a hit belongs to the query's tenant, and matches by its name or, if the query has
 * no service, by an id.
 */
function isOf(
  { id, tenant, name = '', requestId, keyId = '', importId }: Hit,
  query: FindQuery,
): boolean {
  if (query.tenant !== undefined && query.tenant !== tenant) return false
  return (
    isNamed(name, query) ||
    (query.service === undefined && [id, requestId, keyId, importId].includes(query.q))
  )
}

/**
 * Returns whether a name matches. The name of a job with several threads has only its first and its
 * last thread.
 */
function isNamed(name: string, { q, service }: FindQuery): boolean {
  const names = [name, ...name.replace(/ \(\d+\)$/, '').split(' … ')]
  return names.some((one) =>
    service === undefined ? one.slice(one.indexOf('/') + 1) === q : one === `${service}/${q}`,
  )
}

type FoundSource = Pick<
  SourceDocument,
  '_id' | 'tenant' | 'service' | 'externalId' | 'acceptedAt' | 'meta'
>
type FoundQuote = Pick<QuoteDocument, '_id' | 'sourceId' | 'externalId' | 'meta'>

const META = { 'meta.insertedBy': 1, 'meta.changedBy': 1, 'meta.deletion': 1 } as const
const SOURCE_FIELDS = { tenant: 1, service: 1, externalId: 1, acceptedAt: 1, ...META } as const

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
      // A tombstone, which a deletion leaves, has no tenant.
      const live = { tenant: { $type: 'string' } } as const
      // One query after the other, so that a look-up occupies only one connection.
      for (const some of chunksOf(ids, IDS_PER_QUERY))
        if (found.length < HITS_SHOWN)
          found.push(
            ...(await sources
              .find<FoundSource>({ _id: { $in: some }, ...live, ...ofWhom }, options)
              .toArray()),
          )
      return found
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
    const found = await byIds(SOURCE_ID_FORM.test(text) ? [...ids, text] : ids)
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
   * `notes` say what the result leaves out. If MongoDB is unavailable, does not throw, but adds a
   * note, so that the rest of the look-up continues.
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

/**
 * The effect of a request on the quotes of a source: how many it inserted, and how many it was the
 * last to change.
 */
export interface Writing {
  /** The job's id, or `ID.PLACE` if the job has several threads. */
  request: string
  inserted: number
  changed: number
  /** Whether the request created the source, or was the last to change it. */
  source?: 'created' | 'changed'
}

/** A page of a stored thread, and the requests that wrote the thread, newest first. */
export interface ThreadPage extends SourcePage {
  writings: Writing[]
  /** A write that should have ended by now: a part of the thread is not stored. */
  unfinished?: { request: string; since: string }
}

/**
 * At most this number of pairs (inserting request, changing request) is read, those with the newest
 * inserting requests first.
 */
const PAIRS = 1_000

/**
 * Makes a function that reads a page of a stored thread, with the requests that wrote it, the
 * newest first.
 */
export function createReadThread(db: Db) {
  const { readSource } = createSourceReads(db)

  async function readWritings(
    tenant: string,
    id: string,
    signal: AbortSignal,
  ): Promise<Pick<ThreadPage, 'writings' | 'unfinished'>> {
    const writings = new Map<string, Writing>()
    const of = (request: string) => {
      const writing = writings.get(request) ?? { request, inserted: 0, changed: 0 }
      writings.set(request, writing)
      return writing
    }
    const projection = { ...META, 'meta.tokens': 1 }
    const source = await db
      .collection<SourceDocument>('sources')
      .findOne({ _id: id, tenant }, { projection, signal })
    if (source === null) return { writings: [] }
    const pairs = db
      .collection('quotes')
      .aggregate<{ _id: { by: string; changedBy?: string }; quotes: number }>(
        [
          { $match: { ...quotesOf(id), ...seenFilter([source]) } },
          {
            $group: {
              _id: { by: '$meta.insertedBy', changedBy: '$meta.changedBy' },
              quotes: { $sum: 1 },
            },
          },
          { $sort: { _id: -1 } },
          { $limit: PAIRS },
        ],
        { signal, allowDiskUse: true },
      )
    for await (const { _id, quotes } of pairs) {
      of(_id.by).inserted += quotes
      if (_id.changedBy != null) of(_id.changedBy).changed += quotes
    }
    if (source.meta.changedBy !== undefined) of(source.meta.changedBy).source = 'changed'
    of(source.meta.insertedBy).source = 'created'
    const open = await findUnfinished(db, source.meta.tokens ?? [], signal)
    return {
      writings: [...writings.values()].sort((one, other) => (one.request < other.request ? 1 : -1)),
      ...(open && { unfinished: { request: open.request, since: open.since.toISOString() } }),
    }
  }

  /**
   * Returns undefined if the thread is not stored.
   * @throws {CommandFailedError}
   */
  return async (
    tenant: string,
    id: string,
    query: PageQuery,
    gone: AbortSignal,
  ): Promise<ThreadPage | undefined> => {
    const page = await readSource(tenant, id, query, gone)
    return (
      page && { ...page, ...(await withinTime(gone, (signal) => readWritings(tenant, id, signal))) }
    )
  }
}
