import type { QuoteAnswer, SourceAnswer } from '@sluice/contract'
import type { QuoteDocument, SourceDocument } from './documents.ts'
import type { QuoteDraft, RequestOutcome, StoredThread, ThreadPlan } from './drafts.ts'
import { sourceOutcomeFrom, strongerOutcome } from './plan.ts'
import { type InputThread, inputThread, type StoreRequest } from './requests.ts'

// A thread's requests on their way through the rounds of a batch, from the requests to their answers.

/** What a request is answered of the thread as it is now stored. */
export interface StoredAnswer {
  source: SourceAnswer
  quotes: QuoteAnswer[]
}

/** All requests of a batch for one thread. */
export interface ThreadWork {
  id: string
  /** In the order of their stamps. */
  requests: InputThread[]
  /** Each request's outcomes in the rounds so far. */
  outcomes: (RequestOutcome | undefined)[]
  /** An earlier round of this batch opened the source, so it may not be left as it is. */
  hasToken: boolean
}

/** A thread in one round: read and planned. */
export interface ThreadRound {
  work: ThreadWork
  stored: StoredThread
  plan: ThreadPlan
  /** The quotes to write, complete. */
  quoteWrites: readonly QuoteDraft[]
}

/** Groups a batch's requests by thread, each group in the order of acceptance. */
export function groupByThread(requests: readonly StoreRequest[]): ThreadWork[] {
  const byThread = new Map<string, InputThread[]>()
  for (const request of requests) {
    const input = inputThread(request)
    const others = byThread.get(input.name.id)
    if (others === undefined) byThread.set(input.name.id, [input])
    else others.push(input)
  }
  return [...byThread].map(([id, ofThread]) => ({
    id,
    requests: ofThread.sort((one, other) => one.stamp - other.stamp),
    outcomes: ofThread.map(() => undefined),
    hasToken: false,
  }))
}

/** Records the outcomes of a round. A quote whose write was refused has no outcome yet. */
export function recordOutcomes({ work, plan }: ThreadRound, refused: ReadonlySet<string>, isStored: boolean): void {
  work.requests.forEach((request, at) => {
    const now = plan.outcomes[at]
    if (now === undefined) return
    const before = work.outcomes[at]
    const quotes = now.quotes.map((outcome, index) => {
      const known = before?.quotes[index]
      return refused.has(request.quoteIds[index] ?? '') ? (known ?? 'unchanged') : strongerOutcome(outcome, known)
    })
    const source = isStored ? strongerOutcome(now.source, before?.source) : (before?.source ?? 'unchanged')
    work.outcomes[at] = { source, quotes }
  })
}

/** The answer to each request of a stored thread, by the request's id. */
export function answersOf({ work, plan }: ThreadRound, source: SourceDocument): [string, StoredAnswer][] {
  return work.requests.map((request, at) => {
    const known = work.outcomes[at]
    const quotes = request.quoteIds.map((id, index) => {
      const draft = plan.quotes.get(id)
      if (draft === undefined) throw new Error(`quote ${id} was not planned`)
      return quoteAnswer(draft.document, known?.quotes[index] ?? 'unchanged')
    })
    const ofQuotes = sourceOutcomeFrom(quotes.map(({ outcome }) => outcome))
    return [
      request.id,
      { source: sourceAnswer(source, strongerOutcome(known?.source ?? 'unchanged', ofQuotes)), quotes },
    ]
  })
}

function sourceAnswer(document: SourceDocument, outcome: SourceAnswer['outcome']): SourceAnswer {
  const { _id, tenant, acceptedAt, quoteCount, meta, createdAt, description, ...fields } = document
  return { id: _id, ...fields, description: description ?? null, createdAt: createdAt.toISOString(), outcome }
}

function quoteAnswer(document: QuoteDocument, outcome: QuoteAnswer['outcome']): QuoteAnswer {
  const { _id, sourceId, wordCount, meta, createdAt, ...fields } = document
  return createdAt === undefined
    ? { id: _id, ...fields, outcome }
    : { id: _id, ...fields, createdAt: createdAt.toISOString(), outcome }
}
