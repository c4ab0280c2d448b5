// The entry point `@sluice/store/walk`: walks through all sources, to sum what tenants have stored
// and to find threads by their age, and quotes by their speaker. An index for that would cost each
// post. Never writes.
import { createRedactsOf, ERASED, moreOf, type Redacts } from '@sluice/contract'
import type { Collection, Db, Filter } from 'mongodb'
import { MOST_SINGLE, type QuoteDocument, type SourceDocument } from './documents.ts'
import { AFTER_IDS, compareIds, ID_DIGITS, quotesOf } from './ids.ts'
import { PRIMARY } from './mongodb/commands.ts'
import { NOBODY, withinTime } from './read-source.ts'

/**
 * A part has about this number of sources, or a 64th of all if that is more. Parts are not smaller,
 * because the emulator walks all sources for each.
 */
const PART = 25_000

/** Reads a part of the sources. */
type Read<Found> = (
  sources: Collection<SourceDocument>,
  part: Filter<SourceDocument>,
  how: { signal: AbortSignal },
) => Promise<Found[]>

/** The most quotes of a page. */
const QUOTES_AT_ONCE = 2_000

/**
 * Reads all sources, or those after an id, by the first digit of their ids, one part after the
 * other. Not a snapshot.
 * @throws {CommandFailedError}
 */
async function* walk<Found>(db: Db, read: Read<Found>, after = ''): AsyncGenerator<Found[]> {
  const sources = db.collection<SourceDocument>('sources', PRIMARY)
  const count = await sources.estimatedDocumentCount()
  const digits = Math.ceil(ID_DIGITS.length / Math.ceil((count + 1) / PART))
  for (let at = 0; at < ID_DIGITS.length; at += digits) {
    const [first = '', end = AFTER_IDS] = [ID_DIGITS[at], ID_DIGITS[at + digits]]
    if (end <= after) continue
    const part = { _id: { $gt: after > first ? after : first, $lt: end } }
    yield await withinTime(NOBODY, (signal) => read(sources, part, { signal }))
  }
}

/** The sums of what is stored of a tenant. `stamp`: the stamp of its newest post. */
type TenantTotals = Record<'threads' | 'quotes' | 'words' | 'stamp', number>

const SUM = {
  _id: '$tenant',
  threads: { $sum: 1 },
  quotes: { $sum: '$quoteCount' },
  words: { $sum: '$wordCount' },
  stamp: { $max: '$meta.stamp' },
}

/** Sums the stored threads of each tenant. @throws {CommandFailedError} */
export async function sumTenants(db: Db): Promise<Map<string, TenantTotals>> {
  const tenants = new Map<string, TenantTotals>()
  type Sum = TenantTotals & { _id: string | null }
  const parts = walk(db, (sources, $match, how) =>
    sources.aggregate<Sum>([{ $match }, { $group: SUM }], how).toArray(),
  )
  for await (const sums of parts)
    for (const { _id: tenant, ...sum } of sums) {
      // What is left of a deleted thread belongs to no tenant.
      if (tenant === null) continue
      const { threads = 0, quotes = 0, words = 0, stamp = 0 } = tenants.get(tenant) ?? {}
      tenants.set(tenant, {
        threads: threads + sum.threads,
        quotes: quotes + sum.quotes,
        words: words + sum.words,
        stamp: Math.max(stamp, sum.stamp),
      })
    }
  return tenants
}

/** A thread, with the stamp of its last post. */
export interface AgedThread {
  id: string
  tenant: string
  name: { service: string; externalId: string }
  channelName?: string
  stamp: number
}

interface ThreadRange {
  /** The greatest stamp of the last post. */
  until?: number
  /** The id after which to begin. */
  after?: string | undefined
}

/**
 * Finds threads, part by part, in the order of their ids.
 * @throws {CommandFailedError}
 */
export async function* findThreads(
  db: Db,
  of: Partial<Pick<SourceDocument, 'tenant' | 'service'>>,
  { until = Number.MAX_VALUE, after = '' }: ThreadRange = {},
): AsyncGenerator<AgedThread[]> {
  const filter = { tenant: { $exists: true }, ...of, 'meta.stamp': { $lte: until } }
  const projection = { tenant: 1, service: 1, externalId: 1, channelName: 1, 'meta.stamp': 1 }
  const find: Read<SourceDocument> = (sources, part, how) =>
    sources.find<SourceDocument>({ ...part, ...filter }, { projection, ...how }).toArray()
  for await (const found of walk(db, find, after))
    yield found
      .sort(compareIds)
      .map(({ _id: id, tenant, meta: { stamp }, service, externalId, channelName }) => {
        const name = { service, externalId }
        return { id, tenant, name, stamp, ...(channelName !== undefined && { channelName }) }
      })
}

/** Quotes of a source that were found, and what a redaction of them replaces. */
export interface FoundQuotes {
  ids: string[]
  /** Wanted quotes that are redacted already. */
  redacted: string[]
  redacts: Redacts
  /** Whether the source can't remember all of `ids` as deleted. */
  isFull?: boolean
}

interface AboutSource {
  redactsOf: ReturnType<typeof createRedactsOf>
  redacts: Redacts
  marks: number
}

/**
 * Finds the wanted quotes of these sources (at least one) by source, page by page. A page may have
 * none.
 * @throws {CommandFailedError}
 */
export async function* findQuotes(
  db: Db,
  sourceIds: string[],
  isWanted: (quote: Pick<QuoteDocument, 'speaker' | 'meta'>) => boolean,
): AsyncGenerator<Map<string, FoundQuotes>> {
  const quotes = db.collection<QuoteDocument>('quotes', PRIMARY)
  const sources = db.collection<SourceDocument>('sources', PRIMARY)
  const { sourceId, _id: ids } = quotesOf(...sourceIds)
  const order = {
    projection: { sourceId: 1, speaker: 1, 'meta.stamp': 1 },
    sort: { _id: 1 },
  } as const
  for (let [range, isLast] = [ids, false]; !isLast; ) {
    const found = await withinTime(NOBODY, (signal) =>
      quotes.find({ sourceId, _id: range }, { ...order, limit: QUOTES_AT_ONCE, signal }).toArray(),
    )
    isLast = found.length < QUOTES_AT_ONCE
    // Continue behind the last quote: no id contains a space.
    range = { ...ids, $gte: `${found.at(-1)?._id} ` }
    const wanted = found.filter(isWanted)
    const bySource = Map.groupBy(wanted, (quote) => quote.sourceId)
    const about = await findAbout(wanted)
    yield new Map(
      Array.from(bySource, ([id, own]) => {
        const idsOf = (isRedacted: boolean) =>
          own.filter(({ speaker }) => (speaker === ERASED) === isRedacted).map(({ _id }) => _id)
        const [ids, redacted] = [idsOf(false), idsOf(true)]
        const { redacts = 'quotes', marks = 0 } = about.get(id) ?? {}
        return [id, { ids, redacted, redacts, isFull: marks + ids.length > MOST_SINGLE }]
      }),
    )
  }

  /**
   * Reads the texts of the wanted quotes only. Returns, by the ids of their sources, what a
   * redaction replaces, and how many single quotes are marked as deleted.
   */
  function findAbout(wanted: readonly QuoteDocument[]): Promise<Map<string, AboutSource>> {
    const ofWanted = quotesOf(...new Set(wanted.map((quote) => quote.sourceId)))
    const ofSource = { externalId: 1, title: 1, description: 1, url: 1, channelName: 1 }
    const ofQuote = { sourceId: 1, externalId: 1, speaker: 1, text: 1 }
    return withinTime(NOBODY, async (signal) => {
      const about = new Map<string, AboutSource>()
      if (wanted.length === 0) return about
      const how = { projection: { ...ofSource, ...ofQuote, 'meta.deletion.ofQuotes': 1 }, signal }
      for await (const source of sources.find({ _id: ofWanted.sourceId }, how)) {
        const marks = Object.keys(source.meta.deletion?.ofQuotes ?? {}).length
        about.set(source._id, { redactsOf: createRedactsOf(source), redacts: 'quotes', marks })
      }
      const ids = { ...ofWanted, _id: { $in: wanted.map(({ _id }) => _id) } }
      for await (const quote of quotes.find(ids, how)) {
        const one = about.get(quote.sourceId)
        if (one) one.redacts = moreOf(one.redacts, one.redactsOf(quote))
      }
      return about
    })
  }
}
