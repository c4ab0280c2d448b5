// Splits the quotes of a thread into parts, each of which fits into a request.
import { contentOf, type Limits, parseIsoDate, type QuoteRequest } from '@sluice/contract'
import type { Note, UntitledRequest } from '../account/ledger.ts'
import { digestOf } from '../formats/values/digest.ts'

/** Room for the JSON around and between the quotes, which is far shorter. */
const MARGIN_BYTES = 1_024

/**
 * Creates a function that splits the quotes of a source into parts. The store identifies a quote
 * without an externalId by its content, and by the number of equal quotes before it in the request.
 * So a part repeats the equal quotes of earlier parts, without votes, which leaves the stored votes
 * unchanged.
 * `isContinued`: the next call has more quotes of the source.
 */
export function createSplitter({
  quotes: maxQuotes,
  bodyBytes,
}: Pick<Limits, 'quotes' | 'bodyBytes'>) {
  /** Equal quotes without an externalId that the source has had, by content. */
  let equalBefore = new Map<string, number>()
  return (
    source: Omit<UntitledRequest, 'quotes'>,
    quotes: QuoteRequest[],
    isContinued: boolean,
    note: Note,
  ) => {
    const maxBytes = bodyBytes - MARGIN_BYTES - Buffer.byteLength(JSON.stringify(source))
    // Each quote by itself, because the JSON of all would double the memory of a long text.
    const bytes = quotes.reduce((sum, quote) => sum + bytesOf(quote), 0)
    const isOnePart = quotes.length <= maxQuotes && bytes <= maxBytes
    if (isOnePart && !isContinued && equalBefore.size === 0) return [quotes]
    const parts = splitQuotes(quotes, { maxQuotes, maxBytes, equalBefore, note })
    if (!isContinued) equalBefore = new Map()
    return parts
  }
}

interface SplitState {
  maxQuotes: number
  maxBytes: number
  equalBefore: Map<string, number>
  note: Note
}

function splitQuotes(quotes: readonly QuoteRequest[], state: SplitState): QuoteRequest[][] {
  const parts: Part[] = [emptyPart()]
  for (const quote of quotes) {
    const key = (quote.externalId ?? quote.exportedId) ? undefined : contentKey(quote)
    const last = parts.at(-1)
    if (last !== undefined && add(quote, key, last, state)) continue
    const next = emptyPart()
    if (add(quote, key, next, state)) parts.push(next)
    else state.note('skipped', 'equal messages without ids, more than one request can hold')
  }
  return parts.map((part) => part.quotes)
}

type Part = ReturnType<typeof emptyPart>

const emptyPart = () => ({
  quotes: [] as QuoteRequest[],
  bytes: 0,
  equal: new Map<string, number>(),
})

/**
 * Adds a quote to a part. Adds the equal quotes of earlier parts in front of it, because the store
 * numbers equal quotes of a request to identify them. Returns false if the part has no room.
 */
function add(quote: QuoteRequest, key: string | undefined, part: Part, state: SplitState): boolean {
  const before = key === undefined ? 0 : (state.equalBefore.get(key) ?? 0)
  const missing = key === undefined ? 0 : before - (part.equal.get(key) ?? 0)
  const bytes = (1 + missing) * bytesOf(quote)
  // A quote that is too large for any part is sent alone, because the API's answer explains the
  // bound.
  const isAlone = part.quotes.length === 0 && missing === 0
  const hasRoom =
    part.quotes.length + missing < state.maxQuotes && part.bytes + bytes <= state.maxBytes
  if (!hasRoom && !isAlone) return false
  if (missing > 0) part.quotes.push(...Array<QuoteRequest>(missing).fill(withoutVotes(quote)))
  part.quotes.push(quote)
  part.bytes += bytes
  if (key !== undefined) {
    part.equal.set(key, before + 1)
    state.equalBefore.set(key, before + 1)
  }
  return true
}

/** Returns a key of the fields by which the store identifies a quote without an externalId. */
function contentKey({ text, speaker, username, createdAt, replyingTo }: QuoteRequest): string {
  const date = typeof createdAt === 'string' ? (parseIsoDate(createdAt) ?? createdAt) : createdAt
  return digestOf(contentOf({ text, speaker: speaker ?? username, createdAt: date, replyingTo }))
}

function withoutVotes({ upVotes, downVotes, score, ...quote }: QuoteRequest): QuoteRequest {
  return quote
}

/** Returns the bytes of a value in JSON, with a comma. */
function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value)) + 1
}
