// Reads the files of a format as threads. The pieces of a source are combined.
import { contentOf } from '@sluice/contract'
import type {
  Format,
  FormatOptions,
  InputFile,
  Noted,
  Piece,
  QuoteInput,
  Rejected,
} from '../formats/format.ts'
import { withoutPages } from '../formats/read/pages.ts'
import { digestOf } from '../formats/values/digest.ts'
import type { Done } from '../input/read-counted.ts'
import type { ConversationIds } from './conversations.ts'
import type { ExternalSort, SortedRecord, SortRecord } from './external-sort.ts'

/** A thread as it was read: one piece, or the combined pieces of a source. */
export interface ThreadInput extends Omit<Piece, 'order' | 'references'> {
  /** Whether the next thread has more quotes of this source, which is too large. */
  isContinued?: boolean
  /** The number of quotes that are left out, because an earlier file has them. */
  copies?: number
  /** All ids of a conversation. Its threads share the array, by which `createShaper` knows them. */
  ids?: readonly string[]
}

/** Counts only the last part of a large source, and no conversation of empty mails. */
export function countsAsThread(thread: ThreadInput): boolean {
  return thread.isContinued !== true && !isEmptyConversation(thread)
}

/** Returns whether it is a conversation of empty mails, which is not a thread. */
export function isEmptyConversation({ service, quotes }: ThreadInput): boolean {
  return service === 'email' && quotes.length === 0
}

/** What an import consists of. The order of events depends only on the input. */
export type ImportEvent = ThreadInput | Rejected | Noted

export type Events = AsyncGenerator<readonly ImportEvent[]>

/** Bounds a source's JSON, in UTF-16 units, and so memory, and how long the event loop waits. */
const SOURCE_UNITS = 4 * 1024 * 1024

/**
 * Yields lists of events. If pieces must be sorted, rejected records and notes come before all
 * threads.
 * @param sorted counts the pieces that must be sorted, and those that have been combined.
 */
export async function* readGathered(
  format: Format,
  files: readonly InputFile[],
  options: FormatOptions,
  { openSort, sorted }: { openSort: () => ExternalSort; sorted: Done },
): Events {
  const found = withoutPages(format.read(files, options))
  if (format.hasWholeThreads) return yield* found
  using sort = openSort()
  yield* sortPieces(found, sort, sorted)
  yield* putTogether(sort.sorted(), sorted, files.length > 1 ? createCopyCheck : () => () => false)
}

async function* sortPieces(
  found: ReturnType<typeof withoutPages>,
  sort: ExternalSort,
  sorted: Done,
): Events {
  for await (const list of found) {
    const others: ImportEvent[] = []
    for (const one of list) {
      if (one.kind !== 'piece') {
        others.push(one)
        continue
      }
      sorted.total += 1
      for (const record of recordsOf(one)) sort.add(record)
    }
    if (others.length > 0) yield others
  }
}

/** `mail`: the mail's key. Its fields become the source's if the conversation has the same key. */
type FieldsRecord = Pick<Piece, 'fields'> & { mail?: string }
type QuotesRecord = Pick<Piece, 'quotes' | 'place'>
/** Continues the text of the quote before it. */
type RestRecord = { rest: string }
type SourceRecord = FieldsRecord | QuotesRecord | RestRecord | ConversationIds

/** A longer text is sorted in parts: its JSON and bytes would take several times its memory. */
const TEXT_UNITS = 256 * 1024

/** Fields sort before quotes, so that every part of a large source has the same fields. */
function* recordsOf({
  service,
  externalId,
  references,
  order,
  fields,
  quotes,
  place,
}: Piece): Generator<SortRecord> {
  const keyOf = (id: string) => `${service}\0${id}`.toWellFormed()
  const key = keyOf(externalId)
  const record = (
    part: 0 | 1,
    content: FieldsRecord | QuotesRecord | RestRecord,
    before?: readonly string[],
  ): SortRecord => ({
    key,
    order: `${part}${order}`.toWellFormed(),
    text: JSON.stringify(content),
    ...(before && { references: before.map(keyOf) }),
  })
  const ofQuotes = (content: QuotesRecord | RestRecord) => record(1, content, references && [])
  yield record(0, { fields, ...(references && { mail: key }) }, references)
  const [quote] = quotes
  // A quote without an id is compared with others as a whole.
  if (!quote?.externalId || quotes.length > 1 || quote.text.length <= TEXT_UNITS)
    return yield ofQuotes({ quotes, place })
  yield ofQuotes({ quotes: [{ ...quote, text: quote.text.slice(0, TEXT_UNITS) }], place })
  for (let at = TEXT_UNITS; at < quote.text.length; at += TEXT_UNITS)
    yield ofQuotes({ rest: quote.text.slice(at, at + TEXT_UNITS) })
}

async function* putTogether(
  records: AsyncIterable<readonly SortedRecord[]>,
  sorted: Done,
  openCheck: () => CopyCheck,
): Events {
  let open: OpenSource | undefined
  for await (const list of records) {
    const threads: ThreadInput[] = []
    for (const { key, text } of list) {
      const record: SourceRecord = JSON.parse(text)
      const isFull = open !== undefined && open.units > SOURCE_UNITS && !('rest' in record)
      if (open !== undefined && (open.key !== key || isFull)) {
        threads.push(threadOf(open, open.key === key))
        open = open.key === key ? { ...open, quotes: [], copies: 0, units: 0 } : undefined
      }
      open ??= {
        key,
        fields: {},
        ids: [],
        quotes: [],
        place: { path: '' },
        units: 0,
        copies: 0,
        isCopy: openCheck(),
      }
      addRecord(open, record, sorted)
      if (!('fields' in record || 'ids' in record)) open.units += text.length
    }
    if (threads.length > 0) yield threads
  }
  if (open !== undefined) yield [threadOf(open, false)]
}

interface OpenSource extends Pick<Piece, 'fields' | 'place'> {
  key: string
  ids: string[]
  quotes: QuoteInput[]
  units: number
  copies: number
  isCopy: CopyCheck
}

type CopyCheck = (quote: QuoteInput, path: string) => boolean

/** A longer text is replaced by its digest. */
const LONGEST_KEY = 100

/**
 * Creates a check for quotes of a source that have no id. If exports overlap, the n-th of several
 * equal quotes in one file is the same as the n-th in another file, as it would be if the files
 * were imported one after the other. A file may have several equal quotes.
 */
function createCopyCheck(): CopyCheck {
  const counts = new Map<string, number>()
  return ({ externalId, text, attachments, speaker, createdAt, replyingTo }, path) => {
    if (externalId) return false
    const words = text.trim() === '' ? String(attachments) : text
    const content = contentOf({ text: words, speaker, createdAt, replyingTo })
    const key = content.length > LONGEST_KEY ? digestOf(content) : content
    const ofFile = (counts.get(`${path}\0${key}`) ?? 0) + 1
    counts.set(`${path}\0${key}`, ofFile)
    if (ofFile <= (counts.get(key) ?? 0)) return true
    counts.set(key, ofFile)
    return false
  }
}

function addRecord(open: OpenSource, record: SourceRecord, sorted: Done): void {
  const last = open.quotes.at(-1)
  if ('rest' in record) {
    if (last) last.text += record.rest
  } else if ('ids' in record) for (const id of record.ids) open.ids.push(idIn(id))
  else if ('fields' in record) {
    const isOfSource = record.mail === undefined || record.mail === open.key
    Object.assign(
      open.fields,
      isOfSource ? record.fields : { placeholderTitle: record.fields.placeholderTitle },
    )
  } else {
    if (open.place.path === '') open.place = record.place
    for (const quote of record.quotes)
      if (open.isCopy(quote, record.place.path)) open.copies += 1
      else open.quotes.push(quote)
    sorted.done += 1
  }
}

function threadOf(
  { key, fields, ids, quotes, place, copies }: OpenSource,
  isContinued: boolean,
): ThreadInput {
  // `recordsOf` has made the key, which begins with the service of a piece.
  const service = key.slice(0, key.indexOf('\0')) as Piece['service']
  const thread = { service, externalId: idIn(key), fields, quotes, place, isContinued, copies }
  return { kind: 'piece', ...thread, ...(ids.length > 0 && { ids }) }
}

function idIn(key: string): string {
  return key.slice(key.indexOf('\0') + 1)
}
