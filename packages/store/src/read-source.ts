// The door `@sluice/store/read`: reads a stored source with its quotes, a sorted page at a time, and lists sources. It
// never writes.
import {
  type PageQuery,
  type QuotePlace,
  quotePlaceText,
  type SourceList,
  type SourceListQuery,
  type SourcePage,
  SourcePageSchema,
} from '@sluice/contract'
import type { Collection, Db, Filter } from 'mongodb'
import type { QuoteDocument, SourceDocument } from './documents.ts'
import {
  fieldsOf,
  PAGE_CHARACTERS,
  READ_MS,
  readList,
  SOURCE_FIELDS,
  type StoredSource,
  shownSource,
} from './list-sources.ts'
import { IDS_PER_QUERY } from './mongodb/commands.ts'
import { asStoreAway, StoreAwayError } from './mongodb/store-errors.ts'

export { StoreAwayError }

export type SourceReads = ReturnType<typeof createSourceReads>

type StoredQuote = Omit<QuoteDocument, 'meta' | 'wordCount' | 'sourceId'>

const QUOTE_FIELDS = fieldsOf(SourcePageSchema.properties.quotes.items)

/**
 * Reads from the primary with `majority`, so that an answer contains everything that was answered as stored. Each read
 * ends when `gone` aborts, because nobody waits for it any more, and throws a `StoreAwayError` if MongoDB can't be
 * reached or takes longer than ten seconds.
 */
export function createSourceReads(db: Db) {
  const options = { readPreference: 'primary', readConcern: { level: 'majority' } } as const
  const sources = db.collection<SourceDocument>('sources', options)
  const quotes = db.collection<QuoteDocument>('quotes', options)
  return {
    /** Reads a page of a tenant's source. Undefined if the tenant has no source of this id. */
    readSource: (tenant: string, id: string, query: PageQuery, gone: AbortSignal): Promise<SourcePage | undefined> =>
      withinTime(gone, async (signal) => {
        const source = await sources.findOne<StoredSource>({ _id: id }, { projection: SOURCE_FIELDS, signal })
        if (source?.tenant !== tenant) return undefined
        return { source: shownSource(source), ...(await readPage(quotes, id, query, signal)) }
      }),
    /** Reads those of these sources of a tenant that are stored, in the order of the ids. */
    readSources: (tenant: string, ids: readonly string[], gone: AbortSignal): Promise<SourcePage['source'][]> =>
      withinTime(gone, async (signal) => {
        const found = new Map<string, StoredSource>()
        // One query at a time: a read occupies one connection.
        for (let at = 0; at < ids.length; at += IDS_PER_QUERY) {
          const filter = { _id: { $in: ids.slice(at, at + IDS_PER_QUERY) } }
          for await (const source of sources.find<StoredSource>(filter, { projection: SOURCE_FIELDS, signal }))
            found.set(source._id, source)
        }
        return ids.flatMap((id) => {
          const source = found.get(id)
          return source?.tenant === tenant ? [shownSource(source)] : []
        })
      }),
    /** Lists a tenant's sources, newest first. Undefined if `after` is no cursor of this list. */
    listSources: (tenant: string, query: SourceListQuery, gone: AbortSignal): Promise<SourceList | undefined> =>
      withinTime(gone, (signal) => readList(sources, tenant, query, signal)),
  }
}

/** Ends a read after `READ_MS`, or when nobody waits for it any more. */
async function withinTime<Found>(gone: AbortSignal, read: (signal: AbortSignal) => Promise<Found>): Promise<Found> {
  const signal = AbortSignal.any([gone, AbortSignal.timeout(READ_MS)])
  try {
    return await read(signal)
  } catch (error) {
    throw signal.aborted ? new StoreAwayError(error, true) : asStoreAway(error)
  }
}

type Page = Omit<SourcePage, 'source'>

/** The first page finds out how the quotes are sorted; `after` keeps it for the others. */
async function readPage(
  quotes: Collection<QuoteDocument>,
  sourceId: string,
  { limit, after }: PageQuery,
  signal: AbortSignal,
): Promise<Page> {
  const read = (byDate: boolean, filter: Filter<QuoteDocument> = {}) =>
    readSorted(quotes, { sourceId, ...filter }, byDate, limit, signal)
  if (after?.date !== undefined) return read(true, afterDate(after, new Date(after.date)))
  if (after !== undefined) return read(false, afterPosition(after))
  const page = await read(true)
  const [first] = page.quotes
  // Quotes without a date come first: if the first one has a date, all have.
  return first === undefined || first.createdAt !== undefined ? page : read(false)
}

// A field that is absent sorts before all that are there.
const BY_DATE = { createdAt: 1, position: 1, _id: 1 } as const
const BY_POSITION = { position: 1, _id: 1 } as const

function afterDate(place: QuotePlace, createdAt: Date): Filter<QuoteDocument> {
  const { $or: others = [] } = afterPosition(place)
  return { $or: [{ createdAt: { $gt: createdAt } }, ...others.map((other) => ({ createdAt, ...other }))] }
}

function afterPosition({ position, id }: QuotePlace): Filter<QuoteDocument> {
  return { $or: [{ position: { $gt: position } }, { position, _id: { $gt: id } }] }
}

/** The server keeps only as many quotes as the page has while it sorts. Beyond 100 MB of them it uses its disk. */
async function readSorted(
  quotes: Collection<QuoteDocument>,
  filter: Filter<QuoteDocument>,
  byDate: boolean,
  limit: number,
  signal: AbortSignal,
): Promise<Page> {
  const sort = byDate ? BY_DATE : BY_POSITION
  const atOnce = { limit: limit + 1, batchSize: limit + 2, allowDiskUse: true, maxTimeMS: READ_MS }
  const page: Page = { quotes: [] }
  let last: StoredQuote | undefined
  let characters = 0
  for await (const quote of quotes.find<StoredQuote>(filter, { projection: QUOTE_FIELDS, sort, signal, ...atOnce })) {
    const isFull = page.quotes.length === limit || characters > PAGE_CHARACTERS
    if (isFull && last !== undefined) return { ...page, next: quotePlaceText(placeOf(last, byDate)) }
    page.quotes.push(shownQuote(quote))
    last = quote
    characters += quote.text.length
  }
  return page
}

function placeOf({ _id, createdAt, position }: StoredQuote, byDate: boolean): QuotePlace {
  return { ...(byDate && createdAt !== undefined && { date: createdAt.getTime() }), position, id: _id }
}

function shownQuote({ _id, createdAt, ...fields }: StoredQuote): SourcePage['quotes'][number] {
  return createdAt === undefined ? { id: _id, ...fields } : { id: _id, ...fields, createdAt: createdAt.toISOString() }
}
