// Groups requests by thread, plans the writes of each thread, and makes the answers. Sends no command.
import type { QuoteAnswer, SourceAnswer } from '@sluice/contract'
import type {
  InputThread,
  OpenThread,
  QuoteDocument,
  SourceDocument,
  StoredAnswer,
  StoredThread,
  StoreRequest,
  ThreadPlan,
  ThreadWork,
} from '../documents.ts'
import { inputThread, newQuote, newSource } from './drafts.ts'
import { mergeRequests } from './merge-requests.ts'
import { planRepeat } from './repeats.ts'

/** Groups a batch's requests by thread, each group in the order of acceptance. */
export function groupByThread(requests: readonly StoreRequest[]): ThreadWork[] {
  const byThread = Map.groupBy(requests.map(inputThread), ({ names }) => names._id)
  return Array.from(byThread, ([id, ofThread]) => {
    const requestsInOrder = ofThread.sort((one, other) => one.stamp - other.stamp)
    const readsMajority = ofThread.some(({ redelivered }) => redelivered)
    return { id, requests: requestsInOrder, mayHaveChanged: false, readsMajority, refusals: 0, isStored: false }
  })
}

/** Merges requests for one thread, in the order of their stamps, into the stored thread. A pure function. */
export function planThread(stored: StoredThread, requests: readonly InputThread[]): ThreadPlan {
  const [first, ...others] = requests
  if (first === undefined) throw new Error('planThread needs at least one request')
  if (stored.source !== undefined) return planRepeat(stored.source, requests) ?? mergeRequests(stored, requests)
  return others.length === 0 ? planNew(first) : mergeRequests(stored, requests)
}

/** Plans a thread that is not stored, from its only request. No two quotes of a request have one id. */
function planNew(request: InputThread): ThreadPlan {
  const source = newSource(request)
  const quoteWrites = request.quotes.map((quote) => newQuote(quote, request, 0))
  const quotes = new Map(quoteWrites.map((draft) => [draft.document._id, draft]))
  const outcomes = [{ source: source.outcome, quotes: quoteWrites.map(({ outcome }) => outcome) }]
  return { source, quotes, quoteWrites, outcomes }
}

/** Makes the answer to each request of a stored thread, by the request's id. */
export function answersOf({ work, plan, source }: OpenThread): [string, StoredAnswer][] {
  return work.requests.map((request, at) => {
    const outcomes = plan.outcomes[at]
    const quotes = request.quotes.map(({ names: { _id } }, index) => {
      const draft = plan.quotes.get(_id)
      if (draft === undefined) throw new Error(`quote ${_id} was not planned`)
      return quoteAnswer(draft.document, outcomes?.quotes[index] ?? 'unchanged')
    })
    return [request.id, { source: sourceAnswer(source, outcomes?.source ?? 'unchanged'), quotes }]
  })
}

function sourceAnswer(document: SourceDocument, outcome: SourceAnswer['outcome']): SourceAnswer {
  const { _id, tenant, acceptedAt, quoteCount, meta, createdAt, description, ...fields } = document
  return { id: _id, ...fields, description: description ?? null, createdAt: createdAt.toISOString(), outcome }
}

function quoteAnswer(document: QuoteDocument, outcome: QuoteAnswer['outcome']): QuoteAnswer {
  const { _id, sourceId, position, wordCount, meta, createdAt, ...fields } = document
  return { id: _id, ...fields, ...(createdAt && { createdAt: createdAt.toISOString() }), outcome }
}
