// Reads the threads of a batch. It reads few stored texts, so that a worker's memory does not
// depend on their length. A further round reads again the threads that another process has written
// since, and opened threads that another process sums. It also reads, with majority, the threads
// that need no write.
import { asSeenBy, seenQuote } from '../deletions.ts'
import {
  type InputThread,
  type OpenThread,
  type QuoteDocument,
  type QuoteWithoutText,
  type SourceOrTombstone,
  type StoredThread,
  stampOfField,
  type ThreadRound,
  type ThreadWork,
  type WriterToken,
} from '../documents.ts'
import { textDigestOf } from '../merge/drafts.ts'
import { isRepeat, REPLACED } from '../merge/merge.ts'
import { chunksOf, type StoreCommands } from '../mongodb/commands.ts'
import type { SumDeps } from './sum-sources.ts'
import { isMine } from './tokens.ts'
import type { UnendedBatch, Writer } from './writer.ts'

export interface ReadThread {
  work: ThreadWork
  stored: StoredThread
  /**
   * Whether another process sums the quotes. Then the quotes were not read, and nothing may be
   * written.
   */
  isExcluded: boolean
}

export interface ReadDeps extends SumDeps {
  writer: Writer
}

/**
 * Reads the sources first, then watermarks and quotes. Because a writer changes a source before its
 * quotes, the source's version then shows whether a writer has opened the source since.
 */
export async function readStoredThreads(
  deps: ReadDeps,
  works: readonly ThreadWork[],
): Promise<ReadThread[]> {
  const { commands, isExcluded } = deps
  const ids = works.map((work) => work.id)
  const concern = works.some(({ readsMajority }) => readsMajority) ? 'majority' : 'local'
  const found = await commands.find('sources', ids, concern)
  const foreign = found.find(({ meta }) => meta === undefined)
  if (foreign !== undefined)
    throw new Error(`Sluice did not write the document "${foreign._id}" of sources: remove it`)
  await refreshWatermarks(
    deps,
    found.flatMap(({ meta }) => meta.tokens ?? []),
  )
  const tenants = new Map(works.map(({ id, requests }) => [id, requests[0]?.names.tenant ?? '']))
  const sources = new Map(
    found.map((source) => {
      const open = deps.watermarks.withoutSettledTokens(source)
      return [source._id, asSeenBy(tenants.get(source._id) ?? '', open)]
    }),
  )
  const threads = works.map((work) => {
    const source = sources.get(work.id)
    return {
      work,
      source,
      isExcluded: source !== undefined && isExcluded(source, (token) => isMine(work, token)),
    }
  })
  const toRead = threads.flatMap(({ work, source, isExcluded }) =>
    source === undefined || isExcluded || isRepeat(source, work.requests) ? [] : work.requests,
  )
  const quotes = await readQuotes(commands, toRead, sources)
  return threads.map(({ source, ...thread }) => ({ ...thread, stored: { source, quotes } }))
}

/**
 * Workers that write the same thread sometimes refuse each other's writes. After this number of
 * refusals, something is wrong.
 */
const MAX_REFUSALS = 100
/** The upper bound of the random pause before another round doubles each round, up to this. */
const MAX_BACK_OFF_MS = 100

/**
 * Reads threads again after a round. Then removes from each unended batch the threads whose sources
 * lack the batch's token.
 * @param round the number of that round.
 */
export async function readAgain(
  deps: ReadDeps & { unended: Iterable<UnendedBatch> },
  left: readonly ReadThread[],
  round: number,
): Promise<ReadThread[]> {
  const { runtime } = deps
  if (round > 1) await runtime.delay(runtime.random() * Math.min(2 ** round, MAX_BACK_OFF_MS))
  const works = left.map(({ work }) => work)
  const read = await readStoredThreads(deps, works)
  await dropUnopened(deps, [...deps.unended])
  return read
}

/**
 * Removes from each unended batch the threads whose sources lack the batch's token, because the
 * batch did not open them. (If a refused update took effect and was then overwritten, the source
 * still has the token.) Reads with majority, because a write that removed the token might be rolled
 * back.
 */
async function dropUnopened(
  { commands }: ReadDeps,
  unended: readonly UnendedBatch[],
): Promise<void> {
  const ids = new Set(unended.flatMap(({ left }) => left.map(({ id }) => id)))
  const found = await commands.find('sources', [...ids], 'majority')
  const tokens = new Map(found.map(({ _id, meta }) => [_id, meta.tokens ?? []]))
  for (const one of unended) {
    const isOwn = ({ writer, batch }: WriterToken) =>
      writer === one.batch.writer && batch === one.batch.batch
    one.left = one.left.filter(({ id }) => tokens.get(id)?.some(isOwn))
    for (const work of one.left) work.mayHaveChanged = true
  }
}

/**
 * Prepares a refused thread for another round. A refused write may have taken effect, and been
 * overwritten since:
 *
 * - an insert: `meta.insertedBy` then names the request, so the outcome is right.
 * - an update with a token: the source then has the token, and `dropUnopened` finds it after the
 * next read.
 * - an update without a token: nothing shows it, so the thread counts as changed.
 * - a write after the source was opened: the thread has changed.
 */
export function prepareNextRound(
  { work, stored, plan }: ThreadRound,
  open: readonly OpenThread[],
  toSum: boolean,
): void {
  work.refusals += 1
  if (work.refusals === MAX_REFUSALS)
    throw new Error(`other processes won thread ${work.id} ${MAX_REFUSALS} times`)
  const isOpened = open.some((thread) => thread.work === work)
  const isInsert = stored.source === undefined
  if (!isOpened && isInsert) return
  work.requests = work.requests.map((request) => ({ ...request, redelivered: true }))
  const hasToken = toSum || plan.quoteWrites.length > 0
  work.mayHaveChanged ||= isOpened || !hasToken
  work.mayHaveQuotes ||= isOpened
}

/**
 * Makes the watermarks of these tokens' writers as new as possible. Raises this process's own
 * watermark, which writes to MongoDB, and reads the others. Waits for no recount.
 */
async function refreshWatermarks(
  { writer, watermarks }: ReadDeps,
  tokens: readonly WriterToken[],
): Promise<void> {
  for (const state of writer.states) {
    const isOwn = ({ writer: name, batch }: WriterToken) =>
      name === state.name && batch > state.watermark && batch <= state.contiguous
    // If the watermark can't be raised now, the tokens stay open.
    if (tokens.some(isOwn)) await writer.advanceOnce(state).catch(() => {})
    watermarks.remember(state.name, state.watermark)
  }
  const own = new Set(Array.from(writer.states, ({ name }) => name))
  await watermarks.read(tokens.filter(({ writer: name }) => !own.has(name)))
}

/** The most texts in one query, and the most characters of stored texts in one batch. */
const TEXTS_PER_QUERY = 50
const MAX_CHARACTERS = 32_000_000

/** A text that a request has for a stored quote, and that request's stamp. */
type InputText = { _id: string; text: string; stamp: number }

/**
 * Reads the quotes that the requests name, with majority, because a quote that the round does not
 * write must not be rolled back after the answer. Reads a stored text only if it is newer than the
 * requests' texts and differs from them, or if the quote has no text digest. Otherwise the quote
 * gets a request's text, or `REPLACED`.
 */
async function readQuotes(
  commands: Pick<StoreCommands, 'find' | 'findWithoutTexts'>,
  requests: readonly InputThread[],
  sources: ReadonlyMap<string, SourceOrTombstone>,
): Promise<Map<string, QuoteDocument>> {
  const texts = requests.flatMap(({ quotes, stamp }) =>
    quotes.map(({ names: { _id }, values: { text } }): InputText => ({ _id, text, stamp })),
  )
  const input = Map.groupBy(texts, ({ _id }) => _id)
  const found = await commands.findWithoutTexts([...input.keys()], 'majority')
  const quotes = new Map<string, QuoteDocument>()
  const unread: QuoteWithoutText[] = []
  for (const stored of found) {
    const source = sources.get(stored.sourceId)
    const isMarked = source?.meta.deletion !== undefined
    const quote = isMarked ? seenQuote({ ...stored, text: REPLACED }, source) : stored
    if (quote === undefined) continue
    const text = knownText(quote, input.get(quote._id) ?? [], source?.meta.cover ?? 0)
    if (text === undefined) unread.push(quote)
    else quotes.set(quote._id, { ...quote, text })
  }
  let characters = 0
  for (const some of chunksOf(unread, TEXTS_PER_QUERY)) {
    const ids = some.map(({ _id }) => _id)
    for (const stored of await commands.find('quotes', ids, 'majority')) {
      const quote = seenQuote(stored, sources.get(stored.sourceId))
      if (quote !== undefined) quotes.set(quote._id, quote)
      characters += stored.text.length
      if (characters > MAX_CHARACTERS)
        throw new Error(
          `stored texts that are newer than the request's exceed ${MAX_CHARACTERS} characters`,
        )
    }
  }
  return quotes
}

/** Returns the text to merge, or undefined if the stored text must be read. */
function knownText(
  quote: QuoteWithoutText,
  texts: readonly InputText[],
  cover: number,
): string | undefined {
  const same = texts.find(({ text }) => hasText(quote, text))
  if (same !== undefined) return same.text
  if (quote.meta.textDigest === undefined) return undefined
  const stamp = stampOfField(quote, 'text', cover)
  return texts.some((one) => one.stamp > stamp) ? REPLACED : undefined
}

function hasText({ meta: { textDigest } }: QuoteWithoutText, text: string): boolean {
  // Compare the length first, because that needs no hash.
  return textDigest?.startsWith(`${text.length}.`) === true && textDigest === textDigestOf(text)
}
