// A thread in normal form: the one form in which a request is queued, stored and echoed.
import { parseIsoDate } from './iso-date.ts'
import type { QuoteRequest, ThreadRequest } from './thread-request.ts'

/** An absent field is a missing key. Only requests use null for it. */
type Present<T> = { [K in keyof T]: NonNullable<T[K]> }

/** A valid quote of a request, without its absent fields. */
type PrunedQuote = Present<QuoteRequest>

/** A valid request without its absent fields. */
export type PrunedRequest = Present<Omit<ThreadRequest, 'quotes'>> & { quotes: PrunedQuote[] }

/** A source as it was sent, normalised: dates in UTC with milliseconds, `score` only if it was sent. */
export type SourceFields = Omit<PrunedRequest, 'quotes'>

/** A quote as it was sent, normalised like its source. `speaker` stands for `username` too. */
export type QuoteFields = Omit<PrunedQuote, 'username'>

/** One accepted request. No two of its quotes have the same `externalId`. */
export type Thread = { source: SourceFields; quotes: QuoteFields[] }

/**
 * Normalises a valid request. Normalising the result again changes nothing. Every field of the request is copied, in the
 * order of the schema, so that equal requests have equal JSON and a new field of the schema needs no change here.
 */
export function normaliseThread({ quotes, ...source }: PrunedRequest): Thread {
  normaliseValues(source)
  return { source, quotes: mergeQuotes(quotes) }
}

/** Merges quotes that share an `externalId`, at the place of the first and in the order sent. */
function mergeQuotes(requests: PrunedQuote[]): QuoteFields[] {
  const quotes: QuoteFields[] = []
  const byExternalId = new Map<string, QuoteFields>()
  for (const request of requests) {
    const quote = toQuote(request)
    const first = quote.externalId === undefined ? undefined : byExternalId.get(quote.externalId)
    if (first !== undefined) {
      Object.assign(first, quote)
      continue
    }
    quotes.push(quote)
    if (quote.externalId !== undefined) byExternalId.set(quote.externalId, quote)
  }
  return quotes
}

function toQuote({ username, speaker = username, ...quote }: PrunedQuote): QuoteFields {
  normaliseValues(quote)
  // `speaker` comes first, whichever of the two names was sent, because equal quotes must have equal JSON.
  return speaker === undefined ? quote : { speaker, ...quote }
}

/** Changes dates and numbers in place. */
function normaliseValues(fields: Votes & { createdAt?: string }): void {
  const createdAt = fields.createdAt === undefined ? undefined : parseIsoDate(fields.createdAt)
  if (createdAt !== undefined) fields.createdAt = createdAt
  // Adding 0 turns -0, which JSON can't represent, into 0.
  if (fields.upVotes !== undefined) fields.upVotes += 0
  if (fields.downVotes !== undefined) fields.downVotes += 0
  if (fields.score !== undefined) fields.score += 0
}

/** The votes of a source or a quote. */
export type Votes = { upVotes?: number; downVotes?: number; score?: number }

/**
 * The score to show: the one that was sent, else `upVotes` minus `downVotes`, where a missing one counts as 0. Undefined
 * if neither is known, or if the difference is beyond a double's range.
 */
export function effectiveScore({ upVotes, downVotes, score }: Votes): number | undefined {
  if (score !== undefined) return score
  if (upVotes === undefined && downVotes === undefined) return undefined
  const difference = (upVotes ?? 0) - (downVotes ?? 0)
  return Number.isFinite(difference) ? difference : undefined
}
