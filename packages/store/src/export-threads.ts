// The entry point `@sluice/store/export`: writes a tenant's threads as the requests that would
// store them again, with the same ids. Never writes to MongoDB.
import {
  DEFAULT_LIMITS,
  EXPORT_CURSOR,
  type ExportQuery,
  fieldNames,
  ThreadRequestSchema,
  textLength,
} from '@sluice/contract'
import type { Collection, Db, Filter } from 'mongodb'
import { seenQuote } from './deletions.ts'
import type { QuoteDocument, SourceDocument } from './documents.ts'
import { hashTuple, inSource, quotesOf } from './ids.ts'
import { PRIMARY_MAJORITY } from './mongodb/commands.ts'
import { withinTime } from './read-source.ts'
import { speakerName } from './suppressions.ts'

export type ExportThreads = ReturnType<typeof createExportThreads>

/** Where a page of an export goes, and what ends it. */
interface ExportTarget {
  /** Resolves when there is room for more. */
  write: (text: string, signal: AbortSignal) => Promise<void>
  gone: AbortSignal
  /**
   * The page ends with the line that exceeds this number of characters, or when `ms` have passed:
   * MongoDB can be slow, and a read has a time limit.
   */
  most: number
  ms: number
}

/** Lines are written together up to this number of characters. */
const WRITTEN_AT_ONCE = 64 * 1024

/**
 * Makes the function that writes a page: lines, and the cursor of the next page as the last one. It
 * returns the number of threads, or undefined, before it writes, if `after` is no cursor of this
 * export. Reads from the primary with majority. @throws {CommandFailedError}
 */
export function createExportThreads(db: Db) {
  const sources = db.collection<SourceDocument>('sources', PRIMARY_MAJORITY)
  const quotes = db.collection<QuoteDocument>('quotes', PRIMARY_MAJORITY)
  return (tenant: string, query: ExportQuery, { write, gone, most, ms }: ExportTarget) =>
    withinTime(gone, async (signal): Promise<number | undefined> => {
      // A cursor has the source and, within a large thread, the position after which a page begins;
      // and a tag that shows whether it belongs to this export.
      const { service, since, speaker, after } = query
      const tag = hashTuple('export', tenant, service, since, speaker).slice(0, 8)
      const [, source = '', position, tagOfCursor] = EXPORT_CURSOR.exec(after ?? '') ?? []
      if (after !== undefined && tagOfCursor !== tag) return undefined
      const mostOfLine = Math.min(most, LINE_CHARACTERS)
      const read = { sources, quotes, tenant, query, signal, mostOfLine }
      let [text, characters, threads, end] = ['', 0, 0, Number.POSITIVE_INFINITY]
      for await (const { line, at } of readLines(read, source, position)) {
        end = Math.min(end, performance.now() + ms)
        if (line !== undefined) {
          text += line
          characters += line.length
          threads += 1
        }
        const isFull = characters > most || performance.now() > end
        if (isFull) text += `${JSON.stringify({ next: `${at}~${tag}` })}\n`
        if (isFull || text.length > WRITTEN_AT_ONCE) {
          await write(text, signal)
          text = ''
        }
        if (isFull) return threads
      }
      if (text !== '') await write(text, signal)
      return threads
    })
}

/**
 * A thread with more characters or quotes becomes several lines, which an import merges. So a line
 * fits into a request, and into memory.
 */
const LINE_CHARACTERS = 1024 * 1024
const LINE_QUOTES = 5_000
/**
 * The quotes of neighbours are read by one query, up to this number of words. `sizeOf` adds words
 * for the other fields of a source and of its quotes, which can be long.
 */
const GROUP_WORDS = 50_000
const sizeOf = ({ quoteCount, wordCount }: SourceDocument) => 500 + 10 * quoteCount + wordCount
/**
 * Above this number of characters, the words of a group are unusually long, and its sources are
 * read one by one.
 */
const GROUP_CHARACTERS = 4 * LINE_CHARACTERS
/**
 * A group ends if more documents of other sources than this follow one of its own: one query for
 * the whole range would read them, so another query is faster.
 */
const BETWEEN = 100
/** The documents of one reply. */
const REPLY_DOCUMENTS = 500

interface Read {
  sources: Collection<SourceDocument>
  quotes: Collection<QuoteDocument>
  tenant: string
  query: ExportQuery
  signal: AbortSignal
  mostOfLine: number
}

/** A line, if there is one, and the place of an export after it. */
interface Line {
  line?: string
  at: string
}

const NAMES = fieldNames(ThreadRequestSchema(DEFAULT_LIMITS))
const all = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, 1]))
const SOURCE = {
  ...all(['tenant', ...NAMES.source, 'quoteCount', 'wordCount']),
  ...all(['derived', 'stamp', 'cover', 'deletion'].map((name) => `meta.${name}`)),
}
const QUOTE = {
  ...all(['sourceId', 'position', ...NAMES.quote]),
  ...all(['derived', 'stamp', 'stamps', 'cover'].map((name) => `meta.${name}`)),
}

/** Reads all threads after a place. */
async function* readLines(read: Read, after: string, position?: string): AsyncGenerator<Line> {
  if (position !== undefined) {
    const source = await read.sources.findOne(
      { _id: after },
      { projection: SOURCE, signal: read.signal },
    )
    if (source !== null && isWanted(read, source))
      yield* linesOf(read, source, findQuotes(read, source, position), position)
    yield { at: after }
  }
  let ahead: Group | undefined
  // The server reads a group while the lines of the group before are written.
  for await (const group of readGroups(read, after)) {
    if (ahead !== undefined) yield* linesOfGroup(read, ahead)
    ahead = group
  }
  if (ahead !== undefined) yield* linesOfGroup(read, ahead)
}

/** Neighbours, and the place after them. */
interface Group {
  sources: readonly SourceDocument[]
  at: string
  /** The quotes of each source, in any order. Undefined: they are read source by source. */
  quotes: Promise<Map<string, QuoteDocument[]> | undefined>
}

/**
 * Reads the sources in the order of their ids. Every collection has this index, and a thread keeps
 * its place in it, also if it is posted again meanwhile. But it mixes tenants, so the read also
 * walks over the sources of others.
 */
async function* readGroups(read: Read, after: string): AsyncGenerator<Group> {
  let group: SourceDocument[] = []
  let [size, between, at] = [0, 0, after]
  const close = (): Group => {
    const quotes = readQuotes(read, group)
    // If the page ends before the group, nobody awaits it.
    quotes.catch(() => {})
    return { sources: group, at, quotes }
  }
  // The hint: the emulator walks a collection in order for a third of the cost of a sort.
  const how = { sort: { _id: 1 }, hint: { _id: 1 }, batchSize: REPLY_DOCUMENTS } as const
  const options = { ...how, projection: SOURCE, signal: read.signal }
  for await (const source of read.sources.find({ _id: { $gt: after } }, options)) {
    const isOwn = isWanted(read, source)
    if ((isOwn && size + sizeOf(source) > GROUP_WORDS) || between > BETWEEN) {
      yield close()
      group = []
      size = between = 0
    }
    if (isOwn) {
      group.push(source)
      size += sizeOf(source)
      between = 0
    } else between += 1 + (source.quoteCount ?? 0)
    at = source._id
  }
  yield close()
}

function isWanted({ tenant, query: { service, since } }: Read, source: SourceDocument): boolean {
  if (source.tenant !== tenant || (service !== undefined && source.service !== service))
    return false
  return since === undefined || source.meta.stamp >= since.getTime() * 1_000
}

async function readQuotes(
  read: Read,
  sources: readonly SourceDocument[],
): Promise<Map<string, QuoteDocument[]> | undefined> {
  if (sources.length < 2) return undefined
  const [first = '', last = ''] = [sources[0]?._id, sources.at(-1)?._id]
  // Asks for a range, because on the emulator each id of a list costs more the longer the list is,
  // and for no order, because sorting would take it 1.5 times as long.
  const range = { ...quotesOf(first, last), sourceId: { $gte: first, $lte: last } }
  const quotes = new Map<string, QuoteDocument[]>(sources.map(({ _id }) => [_id, []]))
  let characters = 0
  for await (const quote of find(read, range)) {
    quotes.get(quote.sourceId)?.push(quote)
    characters += textLength(quote)
    if (characters > GROUP_CHARACTERS) return undefined
  }
  return quotes
}

function find({ quotes, signal }: Read, filter: Filter<QuoteDocument>) {
  return quotes.find(filter, { projection: QUOTE, batchSize: REPLY_DOCUMENTS, signal })
}

/** Finds the quotes of a source in their order. */
function findQuotes(read: Read, { _id }: SourceDocument, after = '') {
  const filter = { ...quotesOf(_id), position: { $gt: after } }
  return find(read, filter).sort({ position: 1 }).allowDiskUse()
}

async function* linesOfGroup(read: Read, { sources, at, quotes }: Group): AsyncGenerator<Line> {
  const found = await quotes
  for (const source of sources) {
    const own = found?.get(source._id)
    own?.sort((one, other) => (one.position < other.position ? -1 : 1))
    yield* linesOf(read, source, own ?? findQuotes(read, source))
  }
  yield { at }
}

/** Makes the lines of a thread, or of its quotes after a position. */
async function* linesOf(
  read: Read,
  source: SourceDocument,
  found: AsyncIterable<QuoteDocument> | Iterable<QuoteDocument>,
  after?: string,
): AsyncGenerator<Line> {
  let quotes: QuoteDocument[] = []
  let characters = 0
  let last = after
  for await (const quote of found) {
    if (quotes.length === LINE_QUOTES || characters > read.mostOfLine) {
      const at = quotes.at(-1)?.position
      yield { at: `${source._id}~${at}`, ...lineOf(read, source, quotes, last !== undefined) }
      quotes = []
      characters = 0
      last = at
    }
    quotes.push(quote)
    characters += textLength(quote)
  }
  yield { at: source._id, ...lineOf(read, source, quotes, last !== undefined) }
}

/**
 * Makes a line. Makes none if it would have no quotes, and the thread began in an earlier line or
 * the export is of a speaker. Leaves out a derived score, because another store derives it again,
 * also after later votes. Writes a derived date, because another store would derive another one.
 */
function lineOf(
  { query: { speaker } }: Read,
  document: SourceDocument,
  stored: readonly QuoteDocument[],
  isContinued = false,
): Pick<Line, 'line'> {
  const seen = stored.flatMap((quote) => seenQuote(quote, document) ?? [])
  const name = speaker === undefined ? undefined : speakerName(speaker)
  const isTheirs = (quote: QuoteDocument) => quote.speaker && speakerName(quote.speaker) === name
  const quotes = name === undefined ? seen : seen.filter(isTheirs)
  if (quotes.length === 0 && (isContinued || speaker !== undefined)) return {}
  const { _id, tenant, quoteCount, wordCount, ...source } = document
  const sent = quotes.map(({ _id, sourceId, position, wordCount, ...quote }) => ({
    ...asSent(quote),
    ...(quote.externalId === undefined && { exportedId: inSource(_id) }),
  }))
  return { line: `${JSON.stringify({ ...asSent(source), quotes: sent })}\n` }
}

function asSent<Stored extends Pick<QuoteDocument, 'meta'> & { score?: number }>({
  meta,
  score,
  ...fields
}: Stored) {
  const isSent = score !== undefined && meta.derived?.includes('score') !== true
  return { ...fields, ...(isSent && { score }) }
}
