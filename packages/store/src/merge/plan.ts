// Groups requests by thread, plans the writes of each thread, and makes the answers, all without a command.
import type { Outcome, QuoteAnswer, SourceAnswer } from '@sluice/contract'
import type {
  Draft,
  InputThread,
  QuoteDocument,
  QuoteDraft,
  SourceDocument,
  SourceDraft,
  StoredAnswer,
  StoredThread,
  StoreRequest,
  ThreadPlan,
  ThreadRound,
  ThreadWork,
} from '../documents.ts'
import { inputThread, newQuote, newSource } from './drafts.ts'
import { type Merged, mergeQuote, mergeSource } from './merge.ts'
import { planRepeat, shortenRepeats } from './repeats.ts'

/** Groups a batch's requests by thread, each group in the order of acceptance. */
export function groupByThread(requests: readonly StoreRequest[]): ThreadWork[] {
  const byThread = Map.groupBy(requests.map(inputThread), ({ identity }) => identity.id)
  return Array.from(byThread, ([id, ofThread]) => {
    const requestsInOrder = ofThread.sort((one, other) => one.stamp - other.stamp)
    const readsMajority = ofThread.some(({ redelivered }) => redelivered)
    return { id, requests: requestsInOrder, mayHaveChanged: false, readsMajority, refusals: 0 }
  })
}

/** Merges requests for one thread, in the order of their stamps, into the stored thread. A pure function. */
export function planThread(stored: StoredThread, requests: readonly InputThread[]): ThreadPlan {
  const repeat = stored.source && planRepeat(stored.source, requests)
  if (repeat !== undefined) return repeat
  const cover = stored.source?.meta.cover ?? 0
  const quotes = new Map<string, QuoteDraft>()
  const outcomes: ThreadPlan['outcomes'] = []
  let source = unmerged(stored.source)
  for (const request of requests) {
    const { draft, outcome }: Merged<SourceDraft> =
      source === undefined
        ? { draft: newSource(request), outcome: 'created' }
        : mergeSource(source, request.source, request)
    const merged = mergeQuotes(stored, request, quotes, cover)
    source = merged.changed ? markChanged(draft, request.id) : draft
    const isUpdated = outcome === 'unchanged' && merged.outcomes.some((one) => one !== 'unchanged')
    outcomes.push({ source: isUpdated ? 'updated' : outcome, quotes: merged.outcomes })
  }
  if (source === undefined) throw new Error('planThread needs at least one request')
  const plan = { source, quotes, quoteWrites: [...quotes.values()].filter(({ advanced }) => advanced), outcomes }
  return stored.source === undefined && requests.length === 1 ? plan : shortenRepeats(stored, requests, plan)
}

/** Merges a request's quotes into the drafts. `changed`: the request changed a quote, now or in an earlier round. */
function mergeQuotes(
  stored: StoredThread,
  request: InputThread,
  drafts: Map<string, QuoteDraft>,
  cover: number,
): { outcomes: Outcome[]; changed: boolean } {
  const outcomes: Outcome[] = []
  let changed = false
  request.quotes.forEach((input, index) => {
    const id = request.quoteIds[index] ?? ''
    const before = drafts.get(id) ?? unmerged(stored.quotes.get(id))
    const { draft, outcome }: Merged<QuoteDraft> =
      before === undefined
        ? { draft: newQuote({ id, sourceId: request.identity.id, cover, index }, input, request), outcome: 'created' }
        : mergeQuote(before, { cover, index }, input, request)
    drafts.set(id, draft)
    outcomes.push(outcome)
    changed ||= draft.document !== before?.document && outcome !== 'unchanged'
  })
  const wroteBefore = stored.source?.meta.tokens?.some((token) => token.request === request.id) === true
  changed ||= wroteBefore && outcomes.some((outcome) => outcome !== 'unchanged')
  return { outcomes, changed }
}

function unmerged<Stored>(stored: Stored | undefined): Draft<Stored> | undefined {
  return stored && { stored, document: stored, changed: false, advanced: false }
}

function markChanged(draft: SourceDraft, request: string): SourceDraft {
  if (draft.document.meta.insertedBy === request) return { ...draft, changed: true }
  const meta = { ...draft.document.meta, changedBy: request }
  return { ...draft, document: { ...draft.document, meta }, changed: true }
}

/** Makes the answer to each request of a stored thread, by the request's id. */
export function answersOf({ work, plan }: ThreadRound, source: SourceDocument): [string, StoredAnswer][] {
  return work.requests.map((request, at) => {
    const outcomes = plan.outcomes[at]
    const quotes = request.quoteIds.map((id, index) => {
      const draft = plan.quotes.get(id)
      if (draft === undefined) throw new Error(`quote ${id} was not planned`)
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
  return createdAt === undefined
    ? { id: _id, ...fields, outcome }
    : { id: _id, ...fields, createdAt: createdAt.toISOString(), outcome }
}
