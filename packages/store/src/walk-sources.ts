// The entry point `@sluice/store/walk`: walks through all sources, to sum what tenants have stored and
// to find threads by their age, and quotes by their speaker. An index for that would cost each post.
// Never writes.
import { repeatsQuote } from '@sluice/contract'
import type { Collection, Db, Filter } from 'mongodb'
import type { QuoteDocument, SourceDocument } from './documents.ts'
import { AFTER_IDS, compareIds, quotesOf } from './ids.ts'
import { PRIMARY } from './mongodb/commands.ts'
import { withinTime } from './read-source.ts'

/** The digits of ids, in the order in which MongoDB sorts them. */
const DIGITS = '-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz'

/** About so many sources are in a part, or a 64th of all: the emulator walks them for each part. */
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
  const digits = Math.ceil(DIGITS.length / Math.ceil((count + 1) / PART))
  for (let at = 0; at < DIGITS.length; at += digits) {
    const [first = '', end = AFTER_IDS] = [DIGITS[at], DIGITS[at + digits]]
    if (end <= after) continue
    const part = { _id: { $gt: after > first ? after : first, $lt: end } }
    yield await withinTime(NOBODY, (signal) => read(sources, part, { signal }))
  }
}

/** What is stored of a tenant. `stamp`: of the last post of one of its threads. */
export type TenantTotals = Record<'threads' | 'quotes' | 'words' | 'stamp', number>

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
  stamp: number
}

/**
 * Finds threads, part by part, in the order of their ids.
 * @param until the greatest stamp of their last post
 * @param after an id
 * @throws {CommandFailedError}
 */
export async function* findThreads(
  db: Db,
  of: Partial<Pick<SourceDocument, 'tenant' | 'service'>>,
  { until = Number.MAX_VALUE, after = '' } = {},
): AsyncGenerator<AgedThread[]> {
  const filter = { tenant: { $exists: true }, ...of, 'meta.stamp': { $lte: until } }
  const projection = { tenant: 1, service: 1, externalId: 1, 'meta.stamp': 1 }
  const find: Read<SourceDocument> = (sources, part, how) =>
    sources.find<SourceDocument>({ ...part, ...filter }, { projection, ...how }).toArray()
  for await (const found of walk(db, find, after))
    yield found
      .sort(compareIds)
      .map(({ _id: id, tenant, meta: { stamp }, ...name }) => ({ id, tenant, name, stamp }))
}

/** A quote that was found, and whether its source repeats it in the title or the description. */
export interface FoundQuote {
  id: string
  isRepeated: boolean
}

/**
 * Finds the wanted quotes of these sources (at least one) by source, page by page. A page may have
 * none.
 * @throws {CommandFailedError}
 */
export async function* findQuotes(
  db: Db,
  sourceIds: string[],
  isWanted: (quote: Pick<QuoteDocument, 'speaker'>) => boolean,
): AsyncGenerator<Map<string, FoundQuote[]>> {
  const quotes = db.collection<QuoteDocument>('quotes', PRIMARY)
  const sources = db.collection<SourceDocument>('sources', PRIMARY)
  const { sourceId, _id: ids } = quotesOf(...sourceIds)
  const order = { projection: { sourceId: 1, speaker: 1 }, sort: { _id: 1 } } as const
  for (let [range, isLast] = [ids, false]; !isLast; ) {
    const found = await withinTime(NOBODY, (signal) =>
      quotes.find({ sourceId, _id: range }, { ...order, limit: QUOTES_AT_ONCE, signal }).toArray(),
    )
    isLast = found.length < QUOTES_AT_ONCE
    // Behind the last one: no id ends with this.
    range = { ...ids, $gte: `${found.at(-1)?._id} ` }
    const bySource = Map.groupBy(found.filter(isWanted), (quote) => quote.sourceId)
    const wanted = new Map<string, FoundQuote[]>()
    for (const [id, own] of bySource) wanted.set(id, await withRepeated(id, own))
    yield wanted
  }

  /** Reads the texts of few quotes only: the others do not pay for it. */
  function withRepeated(id: string, own: readonly QuoteDocument[]): Promise<FoundQuote[]> {
    return withinTime(NOBODY, async (signal) => {
      const fields = { externalId: 1, title: 1, description: 1, text: 1 }
      const how = { projection: fields, signal }
      const source = await sources.findOne({ _id: id }, how)
      const ids = { ...quotesOf(id), _id: { $in: own.map(({ _id }) => _id) } }
      const texts = await quotes.find(ids, how).toArray()
      return texts.map((quote) => {
        return { id: quote._id, isRepeated: source !== null && repeatsQuote(source, quote) }
      })
    })
  }
}

const NOBODY = new AbortController().signal
