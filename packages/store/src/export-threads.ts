// The entry point `@sluice/store/export`: writes a tenant's threads as the requests that would store
// them again, with the same ids. Never writes to MongoDB.
import {
  DEFAULT_LIMITS,
  EXPORT_CURSOR,
  type ExportQuery,
  fieldNames,
  ThreadRequestSchema,
  textLength,
} from '@sluice/contract'
import type { Collection, Db } from 'mongodb'
import type { QuoteDocument, SourceDocument } from './documents.ts'
import { hashTuple, inSource, quotesOf } from './ids.ts'
import { withinTime } from './read-source.ts'
import { seenQuote } from './seen-quotes.ts'

export type ExportThreads = ReturnType<typeof createExportThreads>

/** Where a page of an export goes, and what ends it. */
interface ExportTarget {
  /** Resolves when there is room for more. */
  write: (text: string, signal: AbortSignal) => Promise<void>
  gone: AbortSignal
  /**
   * The page ends with the line that exceeds this number of characters, or after so many ms: MongoDB
   * can be slow, and a read has a time limit.
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
  const options = { readPreference: 'primary', readConcern: { level: 'majority' } } as const
  const sources = db.collection<SourceDocument>('sources', options)
  const quotes = db.collection<QuoteDocument>('quotes', options)
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
 * The quotes of a group of neighbours are read by one query. It has at most this number of sources,
 * and of words, where a quote counts as WORDS_OF_QUOTE more.
 */
const GROUP_SOURCES = 100
const GROUP_WORDS = 50_000
const WORDS_OF_QUOTE = 10
/** If a group has more characters, its words are longer than words are: its sources are read alone. */
const GROUP_CHARACTERS = 4 * LINE_CHARACTERS
/** With more quotes of other sources in between, another query is faster. */
const QUOTES_BETWEEN = 100
/** The place of a page is known again after this number of sources of others. */
const OTHERS_AT_ONCE = 1_000
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
const QUOTE = all(['sourceId', 'position', ...NAMES.quote])

/**
 * Reads all threads after a place, in the order of the sources' ids. Every collection has this
 * index, and a thread keeps its place in it, whatever is posted meanwhile. But it mixes tenants: the
 * read walks over the sources of others, too.
 */
async function* readLines(read: Read, after: string, position?: string): AsyncGenerator<Line> {
  const { sources, signal } = read
  const how = { projection: SOURCE, batchSize: REPLY_DOCUMENTS, signal }
  if (position !== undefined) {
    const source = await sources.findOne({ _id: after }, how)
    if (source !== null && isWanted(read, source)) yield* readLarge(read, source, position)
    yield { at: after }
  }
  let group: SourceDocument[] = []
  let [words, between, others] = [0, 0, 0]
  let ahead: Group | undefined
  // The hint: the emulator walks a collection in order for a third of the cost of a sort.
  const inOrder = { ...how, sort: { _id: 1 }, hint: { _id: 1 } } as const
  for await (const source of sources.find({ _id: { $gt: after } }, inOrder)) {
    const isOther = !isWanted(read, source)
    if (isOther) between += source.quoteCount ?? 0
    else words += source.wordCount + WORDS_OF_QUOTE * source.quoteCount
    others = isOther ? others + 1 : 0
    const isFull = words > GROUP_WORDS || group.length === GROUP_SOURCES
    if (group.length > 0 && (isFull || between > QUOTES_BETWEEN || others === OTHERS_AT_ONCE)) {
      // The server reads the next group while the lines of the last one are written.
      const next = openGroup(read, group)
      yield* readGroup(read, ahead)
      ahead = next
      group = []
      words = isOther ? 0 : source.wordCount + WORDS_OF_QUOTE * source.quoteCount
    }
    if (!isOther) {
      between = 0
      group.push(source)
    } else if (others === OTHERS_AT_ONCE) {
      yield* readGroup(read, ahead)
      ahead = undefined
      others = 0
      yield { at: source._id }
    }
  }
  yield* readGroup(read, ahead)
  yield* readGroup(read, openGroup(read, group))
}

function isWanted({ tenant, query: { service, since } }: Read, source: SourceDocument): boolean {
  if (source.tenant !== tenant || (service !== undefined && source.service !== service))
    return false
  return since === undefined || source.meta.stamp >= since.getTime() * 1_000
}

const ofSpeaker = ({ query: { speaker } }: Read) => (speaker === undefined ? {} : { speaker })

type Quotes = { documents: QuoteDocument[]; characters: number }

interface Group {
  sources: readonly SourceDocument[]
  /** By source. Undefined: they are read source by source. */
  quotes: Promise<Map<string, Quotes> | undefined>
}

/**
 * Begins to read the quotes of neighbours. They come in any order: to sort them would cost the
 * emulator half as much again.
 */
function openGroup(read: Read, sources: readonly SourceDocument[]): Group {
  const quotes = sources.length < 2 ? Promise.resolve(undefined) : readQuotes(read, sources)
  // If the page ends before the group, nobody awaits it.
  quotes.catch(() => {})
  return { sources, quotes }
}

async function readQuotes(read: Read, sources: readonly SourceDocument[]) {
  const [first = '', last = ''] = [sources[0]?._id, sources.at(-1)?._id]
  // Ranges: on the emulator, each id of a list costs more the longer the list is.
  const range = { ...quotesOf(first, last), sourceId: { $gte: first, $lte: last } }
  const found = read.quotes.find({ ...range, ...ofSpeaker(read) }, quoteOptions(read, sources))
  const quotes = new Map(
    sources.map(({ _id }) => [_id, { documents: [], characters: 0 } as Quotes]),
  )
  let all = 0
  for await (const quote of found) {
    const own = quotes.get(quote.sourceId)
    if (own === undefined) continue
    own.documents.push(quote)
    own.characters += textLength(quote)
    all += textLength(quote)
    if (all > GROUP_CHARACTERS) return undefined
  }
  return quotes
}

async function* readGroup(read: Read, group: Group | undefined): AsyncGenerator<Line> {
  if (group === undefined) return
  const quotes = await group.quotes
  for (const source of group.sources) {
    const { documents, characters } = quotes?.get(source._id) ?? NONE
    if (characters > read.mostOfLine) yield* readLarge(read, source)
    else {
      documents.sort((one, other) => (one.position < other.position ? -1 : 1))
      yield { at: source._id, ...lineOf(read, source, documents) }
    }
  }
}

/** Stands for quotes that are not read yet. */
const NONE: Quotes = { documents: [], characters: Number.POSITIVE_INFINITY }

/** Where something was deleted, the stamps of a quote say what is left of it. */
const quoteOptions = ({ signal }: Read, sources: readonly SourceDocument[]) => ({
  projection: {
    ...QUOTE,
    [sources.some(({ meta }) => meta.deletion) ? 'meta' : 'meta.derived']: 1,
  },
  batchSize: REPLY_DOCUMENTS,
  signal,
})

/** Reads a thread as several lines, or what comes after a position in it. */
async function* readLarge(
  read: Read,
  source: SourceDocument,
  after?: string,
): AsyncGenerator<Line> {
  const { _id } = source
  const filter = {
    ...quotesOf(_id),
    ...ofSpeaker(read),
    ...(after !== undefined && { position: { $gt: after } }),
  }
  const how = {
    ...quoteOptions(read, [source]),
    sort: { position: 1 },
    allowDiskUse: true,
  } as const
  let quotes: QuoteDocument[] = []
  let characters = 0
  let last = after
  for await (const quote of read.quotes.find(filter, how)) {
    if (quotes.length === LINE_QUOTES || characters > read.mostOfLine) {
      const at = quotes.at(-1)?.position
      yield { at: `${_id}~${at}`, ...lineOf(read, source, quotes, last !== undefined) }
      quotes = []
      characters = 0
      last = at
    }
    quotes.push(quote)
    characters += textLength(quote)
  }
  yield { at: _id, ...lineOf(read, source, quotes, last !== undefined) }
}

/**
 * Writes a line, unless no quote is in it that should be. A derived score is left out: it follows
 * from the votes again, also from later ones. A derived date is written, as it would be another one
 * in another store.
 */
function lineOf(
  { query: { speaker } }: Read,
  document: SourceDocument,
  stored: readonly QuoteDocument[],
  isContinued = false,
): Pick<Line, 'line'> {
  const seen = stored.flatMap((quote) => seenQuote(quote, document) ?? [])
  const quotes = speaker === undefined ? seen : seen.filter((quote) => quote.speaker === speaker)
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
