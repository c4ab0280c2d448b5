import { parseIsoDate } from './iso-date.ts'
import type { QuoteFields, SourceFields, Thread } from './thread.ts'
import type { QuoteRequest, ThreadRequest } from './thread-request-schema.ts'

/** The one form of a valid request that is queued, stored and echoed. Normalising it again changes nothing. */
export function normaliseThread(request: ThreadRequest): Thread {
  return { source: toSource(request), quotes: mergeQuotes(request.quotes) }
}

function toSource(request: ThreadRequest): SourceFields {
  const source: SourceFields = { service: request.service, externalId: request.externalId, title: request.title }
  if (request.channelName != null) source.channelName = request.channelName
  if (request.channelId != null) source.channelId = request.channelId
  if (request.description != null) source.description = request.description
  if (request.url != null) source.url = request.url
  copyDateAndVotes(request, source)
  return source
}

function mergeQuotes(requests: QuoteRequest[]): QuoteFields[] {
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

function toQuote(request: QuoteRequest): QuoteFields {
  const quote: QuoteFields = { text: request.text }
  const speaker = request.speaker ?? request.username
  if (request.externalId != null) quote.externalId = request.externalId
  if (speaker != null) quote.speaker = speaker
  if (request.replyingTo != null) quote.replyingTo = request.replyingTo
  copyDateAndVotes(request, quote)
  return quote
}

function copyDateAndVotes(from: ThreadRequest | QuoteRequest, to: SourceFields | QuoteFields): void {
  const createdAt = from.createdAt == null ? undefined : parseIsoDate(from.createdAt)
  if (createdAt !== undefined) to.createdAt = createdAt
  // Adding 0 makes 0 of -0, which JSON can't carry back.
  if (from.upVotes != null) to.upVotes = from.upVotes + 0
  if (from.downVotes != null) to.downVotes = from.downVotes + 0
  if (from.score != null) to.score = from.score + 0
}
