// Entry point `@sluice/store/read`: reads stored sources as callers see them, a page at a time.
// Never writes.
import {
  LIST_CURSOR,
  type ListedSource,
  type PageQuery,
  type QuoteCursor,
  quoteCursorText,
  type SourceList,
  type SourceListQuery,
  type SourcePage,
  SourcePageSchema,
  textLength,
} from '@sluice/contract'
import type { Collection, Db, Filter } from 'mongodb'
import { seenFilter, seenQuote } from './deletions.ts'
import {
  type QuoteDocument,
  type SourceDocument,
  type SourceMarks,
  STALE_MS,
  type WriterDocument,
  type WriterToken,
} from './documents.ts'
import { hashTuple, listCursorOf, listPrefixOf, quotesOf } from './ids.ts'
import {
  asCommandFailed,
  CommandFailedError,
  chunksOf,
  IDS_PER_QUERY,
  PRIMARY_MAJORITY,
} from './mongodb/commands.ts'

export type { QuoteDocument, SourceDocument }
export { CommandFailedError, chunksOf, IDS_PER_QUERY, PRIMARY_MAJORITY, seenFilter, seenQuote }

/**
 * Returns the oldest write of a source that should have ended by now, if its tokens show one: the
 * writer is slow or dead.
 */
export async function findUnfinished(db: Db, tokens: readonly WriterToken[], signal: AbortSignal) {
  const old = tokens.filter(({ since }) => Date.now() - since.getTime() >= STALE_MS)
  if (old.length === 0) return undefined
  const names = old.map(({ writer }) => writer)
  const writers = db.collection<WriterDocument>('writers').find({ _id: { $in: names } }, { signal })
  const ended = new Map((await writers.toArray()).map(({ _id, watermark }) => [_id, watermark]))
  const open = old.filter(({ writer, batch }) => batch > (ended.get(writer) ?? 0))
  return open.sort((one, other) => one.since.getTime() - other.since.getTime())[0]
}

export type SourceReads = ReturnType<typeof createSourceReads>

type StoredSource = Pick<SourceDocument, '_id' | 'createdAt' | 'tenant'> &
  Omit<SourcePage['source'], 'id' | 'createdAt'>

// Read only the fields that callers see, because other tools may keep large fields in the same
// documents.
const SOURCE_FIELDS = { ...fieldsOf(SourcePageSchema.properties.source), tenant: 1 }
const QUOTE_FIELDS = fieldsOf(SourcePageSchema.properties.quotes.items)

function fieldsOf({ properties }: { properties: object }): Record<string, 1> {
  return Object.fromEntries(
    Object.keys(properties).flatMap((name) => (name === 'id' ? [] : [[name, 1] as const])),
  )
}

/**
 * Makes the functions that read sources. They read from the primary with majority, so they find
 * each thread that was answered as stored.
 * @throws {CommandFailedError}
 */
export function createSourceReads(db: Db) {
  const sources = db.collection<SourceDocument>('sources', PRIMARY_MAJORITY)
  const quotes = db.collection<QuoteDocument>('quotes', PRIMARY_MAJORITY)
  return {
    /**
     * Reads a page of a tenant's source. Returns undefined if the tenant has no source with this
     * id.
     */
    readSource: (
      tenant: string,
      id: string,
      query: PageQuery,
      gone: AbortSignal,
      most = PAGE_CHARACTERS,
    ) =>
      withinTime<SourcePage | undefined>(gone, async (signal) => {
        const source = await sources.findOne<StoredSource & { meta?: SourceMarks }>(
          { _id: id },
          { projection: { ...SOURCE_FIELDS, 'meta.deletion': 1, 'meta.cover': 1 }, signal },
        )
        if (source?.tenant !== tenant) return undefined
        const { meta = {}, ...shown } = source
        return {
          source: shownSource(shown),
          ...(await readQuotes(quotes, { _id: id, meta }, query, signal, most)),
        }
      }),
    /**
     * Reads a tenant's sources by their ids, in the order of the ids. Omits ids for which the
     * tenant has no source. If the texts exceed `most` characters, stops, and returns the remaining
     * ids as `rest`.
     */
    readSources: (
      tenant: string,
      ids: readonly string[],
      gone: AbortSignal,
      most = PAGE_CHARACTERS,
    ) =>
      withinTime(gone, async (signal) => {
        const found = new Map<string, StoredSource>()
        let [place, characters] = [0, 0]
        // One query after the other, so that a read occupies only one connection.
        while (place < ids.length && characters <= most) {
          const some = ids.slice(place, place + Math.min(IDS_PER_QUERY, documentsAtOnce(most)))
          const query = sources.find<StoredSource>(
            { _id: { $in: some } },
            { projection: SOURCE_FIELDS, signal },
          )
          for await (const source of query) {
            found.set(source._id, source)
            characters += textLength(source)
            if (characters > most) break
          }
          if (characters <= most) place += some.length
        }
        const shown = ids.flatMap((id) => {
          const source = found.get(id)
          return source?.tenant === tenant ? [shownSource(source)] : []
        })
        return { sources: shown, rest: ids.slice(place).filter((id) => !found.has(id)) }
      }),
    /**
     * Lists a tenant's sources, newest first. Returns undefined if `after` is no cursor of this
     * list.
     */
    listSources: (
      tenant: string,
      query: SourceListQuery,
      gone: AbortSignal,
      most = PAGE_CHARACTERS,
    ) => withinTime(gone, (signal) => readList(sources, tenant, query, signal, most)),
  }
}

/**
 * The time limit of a read. It is long, because the server sorts all quotes of a source for each
 * page, perhaps a million.
 */
const READ_MS = 10_000

/** The caller of a read in the background, who never disconnects. */
export const NOBODY = new AbortController().signal

/**
 * Ends a read after `READ_MS`, or when its caller has disconnected.
 * @throws {CommandFailedError}
 */
export async function withinTime<Found>(
  gone: AbortSignal,
  read: (signal: AbortSignal) => Promise<Found>,
) {
  const signal = AbortSignal.any([gone, AbortSignal.timeout(READ_MS)])
  try {
    return await read(signal)
  } catch (error) {
    throw signal.aborted ? new CommandFailedError(error, false) : asCommandFailed(error)
  }
}

/**
 * By default, a page ends when its texts exceed this number of characters, so that it fits into
 * memory.
 */
const PAGE_CHARACTERS = 512 * 1024

/**
 * How many documents the server may send before the length of the page is checked: a document
 * rarely has more than 4,096 characters.
 */
const documentsAtOnce = (mostCharacters: number) => mostCharacters / 4_096

/** Returns the documents of one page and, if more follow, the last of them. */
async function pageOf<Found extends object>(
  found: AsyncIterable<Found>,
  limit: number,
  most: number,
): Promise<{ page: Found[]; last?: Found }> {
  const page: Found[] = []
  let characters = 0
  for await (const document of found) {
    const last = page.at(-1)
    if (last !== undefined && (page.length === limit || characters > most)) return { page, last }
    page.push(document)
    characters += textLength(document)
  }
  return { page }
}

/**
 * Asks for one document more than the page has, to learn whether more follow. If the page is short,
 * the batch is larger than the page, so that the first reply is the last.
 */
function optionsOf(limit: number, signal: AbortSignal, most: number) {
  return {
    limit: limit + 1,
    batchSize: Math.min(limit + 2, documentsAtOnce(most)),
    maxTimeMS: READ_MS,
    signal,
  }
}

type QuotePage = Omit<SourcePage, 'source'>

/**
 * Reads a page of quotes. The first page decides the order: by date if all quotes have a date,
 * otherwise by position. Later pages keep the order that `after` names.
 */
async function readQuotes(
  quotes: Collection<QuoteDocument>,
  source: { _id: string; meta: SourceMarks },
  { limit, after }: PageQuery,
  signal: AbortSignal,
  most: number,
): Promise<QuotePage> {
  /**
   * Reads a page in one order. While the server sorts, it keeps only the quotes of the page in
   * memory, and uses its disk above 100 MB.
   */
  async function read(byDate: boolean, filter: Filter<QuoteDocument> = {}): Promise<QuotePage> {
    const { limit: wanted, ...how } = optionsOf(limit, signal, most)
    const found = quotes.aggregate<QuoteDocument>(
      [
        // A stage of its own, because the emulator uses no index for a condition with `$or`.
        { $match: quotesOf(source._id) },
        { $match: { ...seenFilter([source]), ...filter } },
        { $sort: byDate ? BY_DATE : BY_POSITION },
        { $limit: wanted },
        ...(source.meta.deletion === undefined ? [{ $project: QUOTE_FIELDS }] : []),
      ],
      { ...how, allowDiskUse: true },
    )
    const { page, last } = await pageOf(found, limit, most)
    return {
      quotes: page.flatMap((quote) => {
        const seen = seenQuote(quote, source)
        return seen === undefined ? [] : [shownQuote(seen)]
      }),
      ...(last && { next: quoteCursorText(cursorOf(last, byDate)) }),
    }
  }
  if (after?.date !== undefined) return read(true, afterDate(after, new Date(after.date)))
  if (after !== undefined) return read(false, afterPosition(after))
  const page = await read(true)
  const [first] = page.quotes
  // Quotes without a date come first, so if the first one has a date, all have.
  return first === undefined || first.createdAt !== undefined ? page : read(false)
}

// A field that is absent sorts before all values.
const BY_DATE = { createdAt: 1, position: 1, _id: 1 } as const
const BY_POSITION = { position: 1, _id: 1 } as const

function afterDate(cursor: QuoteCursor, createdAt: Date): Filter<QuoteDocument> {
  const { $or: others = [] } = afterPosition(cursor)
  return {
    $or: [{ createdAt: { $gt: createdAt } }, ...others.map((other) => ({ createdAt, ...other }))],
  }
}

function afterPosition({ position, id }: QuoteCursor): Filter<QuoteDocument> {
  return { $or: [{ position: { $gt: position } }, { position, _id: { $gt: id } }] }
}

function cursorOf({ _id, createdAt, position }: QuoteDocument, byDate: boolean): QuoteCursor {
  return {
    ...(byDate && createdAt !== undefined && { date: createdAt.getTime() }),
    position,
    id: _id,
  }
}

type StoredEntry = StoredSource & Pick<SourceDocument, 'acceptedAt' | 'quoteCount'>

const ENTRY_FIELDS = { ...SOURCE_FIELDS, acceptedAt: 1, quoteCount: 1 }
/**
 * At most this number of sources is read for a page of one service. Without the bound, many sources
 * of other services would make the page slow.
 */
const EXAMINED = 5_000
/** The shortest and the longest span of time in which `newestIn` looks for sources. */
const FIRST_SPAN_MS = 1_000
const LONGEST_SPAN_MS = 365 * 24 * 3_600_000
/** Precedes all ids. */
const FIRST_ID = '-'.repeat(24)
/** Sorts after every date. */
const END = ':'

/**
 * Reads a page by the index of `meta.listKey`. Returns undefined if `after` is no cursor of this
 * list.
 */
async function readList(
  sources: Collection<SourceDocument>,
  tenant: string,
  { service, since, limit, after }: SourceListQuery,
  signal: AbortSignal,
  most: number,
): Promise<SourceList | undefined> {
  // A cursor has the place in the list at which a page ended, and a tag that shows to which list it
  // belongs.
  const tag = hashTuple('list', tenant, service, since).slice(0, 8)
  const [, cursor, tagOfCursor] = LIST_CURSOR.exec(after ?? '') ?? []
  if (after !== undefined && tagOfCursor !== tag) return undefined

  const prefix = listPrefixOf(tenant)
  const whole = {
    $gte: prefix + (since === undefined ? '' : listCursorOf(since)),
    $lt: prefix + (cursor ?? END),
  }
  const wanted = service === undefined ? limit + 1 : EXAMINED
  const before = cursor === undefined ? Date.now() : Number.parseInt(cursor, 10)
  const startOf = (ms: number) =>
    prefix + listCursorOf(new Date(Math.max(0, before - ms)), FIRST_ID)
  const range = await newestIn(sources, whole, wanted, startOf, signal)

  // A page of one service ends at the `EXAMINED`-th source, counting the sources of all services.
  const sort = { 'meta.listKey': -1 } as const
  const nth = {
    sort,
    projection: { 'meta.listKey': 1 },
    skip: EXAMINED - 1,
    maxTimeMS: READ_MS,
    signal,
  }
  const end = service === undefined ? null : await sources.findOne({ 'meta.listKey': range }, nth)
  const examined = end === null ? range : { ...range, $gte: end.meta.listKey }
  const filter = { 'meta.listKey': examined, ...(service !== undefined && { service }) }
  const how = { projection: ENTRY_FIELDS, sort, ...optionsOf(limit, signal, most) }
  const { page, last } = await pageOf(sources.find<StoredEntry>(filter, how), limit, most)

  // The next page begins after the last source. If all examined sources fit on this page, it begins
  // where the examined range ended.
  const isWhole = end === null && range === whole
  const rest = isWhole ? undefined : examined.$gte.slice(prefix.length)
  const next = last === undefined ? rest : listCursorOf(last.acceptedAt, last._id)
  return { sources: page.map(listed), ...(next !== undefined && { next: `${next}~${tag}` }) }
}

type ListRange = Record<'$gte' | '$lt', string>

/**
 * Returns the newest part of a range that has at least `wanted` sources, or the whole range. A
 * short range is faster, because DocumentDB and the emulator sort the whole range for each page.
 * The first span is the last second of the range, and each further span is eight times as long,
 * until one has enough sources.
 * @param startOf returns the key that is `ms` before the range's end.
 */
async function newestIn(
  sources: Collection<SourceDocument>,
  whole: ListRange,
  wanted: number,
  startOf: (ms: number) => string,
  signal: AbortSignal,
): Promise<ListRange> {
  for (let ms = FIRST_SPAN_MS; ; ms *= 8) {
    const range = { ...whole, $gte: startOf(ms) }
    if (ms > LONGEST_SPAN_MS || range.$gte <= whole.$gte) return whole
    const last = { projection: { _id: 1 }, skip: wanted - 1, maxTimeMS: READ_MS, signal } as const
    if ((await sources.findOne({ 'meta.listKey': range }, last)) !== null) return range
  }
}

function listed({ acceptedAt, quoteCount, ...source }: StoredEntry): ListedSource {
  return { ...shownSource(source), quoteCount, acceptedAt: acceptedAt.toISOString() }
}

function shownSource({
  _id,
  tenant: _,
  createdAt,
  description,
  ...fields
}: StoredSource): SourcePage['source'] {
  return {
    id: _id,
    ...fields,
    description: description ?? null,
    createdAt: createdAt.toISOString(),
  }
}

function shownQuote({
  _id,
  sourceId: _source,
  wordCount: _words,
  meta: _meta,
  createdAt,
  ...fields
}: QuoteDocument): SourcePage['quotes'][number] {
  return createdAt === undefined
    ? { id: _id, ...fields }
    : { id: _id, ...fields, createdAt: createdAt.toISOString() }
}
