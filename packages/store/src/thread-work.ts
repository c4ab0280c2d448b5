import type { QuoteAnswer, SourceAnswer } from '@sluice/contract'
import type { SourceDocument } from './documents.ts'
import { type GivenThread, givenThread } from './given-thread.ts'
import { sourceOutcomeFrom, strongerOutcome } from './outcome-of.ts'
import type { StoreRequest } from './store-request.ts'
import type { RequestOutcome, StoredThread, ThreadPlan } from './thread-plan.ts'

/** What a request is told of the thread as it is now stored. */
export interface StoredAnswer {
  source: SourceAnswer
  quotes: QuoteAnswer[]
}

/** All requests of a batch for one thread, on their way through the rounds. */
export interface ThreadWork {
  id: string
  /** In the order of their stamps. */
  requests: GivenThread[]
  /** What is known of each request's outcome from the rounds so far. */
  told: (RequestOutcome | undefined)[]
  /** An earlier round, or an earlier delivery, may have written quotes that nobody has counted yet. */
  uncounted: boolean
}

/** A thread in one round: read, planned, and on its way into the store. */
export interface ThreadRound {
  work: ThreadWork
  stored: StoredThread
  plan: ThreadPlan
}

/** Somebody else may be writing the thread's quotes, or was when it stopped: only a sum tells how many words there are. */
export function isContended({ work, stored }: Pick<ThreadRound, 'work' | 'stored'>): boolean {
  return work.uncounted || stored.source?.meta.writers !== undefined
}

/** Brings a batch's requests together by thread, each in the order of acceptance. */
export function workOf(requests: readonly StoreRequest[]): ThreadWork[] {
  const byThread = new Map<string, GivenThread[]>()
  for (const request of requests) {
    const given = givenThread(request)
    const others = byThread.get(given.name.id)
    if (others === undefined) byThread.set(given.name.id, [given])
    else others.push(given)
  }
  return [...byThread].map(([id, ofThread]) => ({
    id,
    requests: ofThread.sort((one, other) => one.stamp - other.stamp),
    told: ofThread.map(() => undefined),
    uncounted: ofThread.some(({ redelivered }) => redelivered),
  }))
}

/**
 * Keeps what each request did in this round. A quote whose write was refused did nothing yet, and is planned again in the next one.
 */
export function tell({ work, plan }: ThreadRound, refused: ReadonlySet<string>, committed: boolean): void {
  work.requests.forEach((request, at) => {
    const now = plan.outcomes[at]
    if (now === undefined) return
    const before = work.told[at]
    const quotes = now.quotes.map((outcome, index) => {
      const known = before?.quotes[index]
      return refused.has(request.quoteIds[index] ?? '') ? (known ?? 'unchanged') : strongerOutcome(outcome, known)
    })
    work.told[at] = {
      source: committed ? strongerOutcome(now.source, before?.source) : (before?.source ?? 'unchanged'),
      quotes,
    }
  })
}

/** The answer to each request of a thread that is stored, by the request's id. */
export function answersOf({ work, plan }: ThreadRound, source: SourceDocument): [string, StoredAnswer][] {
  return work.requests.map((request, at) => {
    const told = work.told[at]
    const quotes = request.quoteIds.map((id, index) => quoteAnswer(plan, id, told?.quotes[index] ?? 'unchanged'))
    const outcome = sourceOutcomeFrom(quotes.map((quote) => quote.outcome))
    return [request.id, { source: sourceAnswer(source, strongerOutcome(told?.source ?? 'unchanged', outcome)), quotes }]
  })
}

function sourceAnswer(document: SourceDocument, outcome: SourceAnswer['outcome']): SourceAnswer {
  const { _id, tenant, acceptedAt, quoteCount, meta, createdAt, description, ...fields } = document
  return { id: _id, ...fields, description: description ?? null, createdAt: createdAt.toISOString(), outcome }
}

function quoteAnswer({ quotes }: ThreadPlan, id: string, outcome: QuoteAnswer['outcome']): QuoteAnswer {
  const draft = quotes.get(id)
  if (draft === undefined) throw new Error(`quote ${id} was not planned`)
  const { _id, sourceId, wordCount, meta, createdAt, ...fields } = draft.document
  return createdAt === undefined
    ? { id: _id, ...fields, outcome }
    : { id: _id, ...fields, createdAt: createdAt.toISOString(), outcome }
}
