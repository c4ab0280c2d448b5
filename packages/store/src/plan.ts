// Groups requests by thread, plans the writes of each thread, and makes the answers, all without a command.
import type { Outcome, QuoteAnswer, SourceAnswer } from '@sluice/contract'
import type { QuoteDocument, SourceDocument } from './documents.ts'
import { inputThread, newQuote, newSource } from './drafts.ts'
import { mergeQuote, mergeSource } from './merge.ts'
import { coverOf, isRepeat, planRepeat, withOwnCover } from './repeats.ts'
import type {
  Draft,
  InputThread,
  QuoteDraft,
  RequestOutcome,
  SourceDraft,
  StoredAnswer,
  StoredThread,
  StoreRequest,
  ThreadPlan,
  ThreadRound,
  ThreadWork,
} from './thread.ts'

/** Groups a batch's requests by thread, each group in the order of acceptance. */
export function groupByThread(requests: readonly StoreRequest[]): ThreadWork[] {
  const byThread = new Map<string, InputThread[]>()
  for (const request of requests) {
    const input = inputThread(request)
    const others = byThread.get(input.identity.id)
    if (others === undefined) byThread.set(input.identity.id, [input])
    else others.push(input)
  }
  return [...byThread].map(([id, ofThread]) => ({
    id,
    requests: ofThread.sort((one, other) => one.stamp - other.stamp),
    outcomes: ofThread.map(() => undefined),
    mayHaveToken: false,
  }))
}

/** Merges requests for one thread, in the order of their stamps, into the stored thread. A pure function. */
export function planThread(stored: StoredThread, requests: readonly InputThread[]): ThreadPlan {
  const [first] = requests
  if (stored.source !== undefined && first !== undefined && isRepeat(stored.source, requests))
    return planRepeat(stored.source, first)
  const cover = stored.source?.meta.cover ?? 0
  const quotes = new Map<string, QuoteDraft>()
  const outcomes: RequestOutcome[] = []
  let source = unmerged(stored.source)
  for (const request of requests) {
    const merged = source === undefined ? newSourceFor(request) : mergeSource(source, request.source, request)
    const mergedQuotes = mergeQuotes(stored, request, quotes, cover)
    const outcomeByQuotes = sourceOutcomeFrom(mergedQuotes.outcomes)
    source = mergedQuotes.changed ? markChanged(merged.draft, request.id) : merged.draft
    outcomes.push({ source: strongerOutcome(merged.outcome, outcomeByQuotes), quotes: mergedQuotes.outcomes })
  }
  if (source === undefined) throw new Error('planThread needs at least one request')
  return withDigest(stored, requests, withCover(stored, { source, quotes, outcomes }))
}

function newSourceFor(request: InputThread): { draft: SourceDraft; outcome: Outcome } {
  return { draft: newSource(request.identity, request.source, request), outcome: 'created' }
}

/** Merges a request's quotes into the drafts. `changed`: the request changed a quote, in this round or in an earlier one. */
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
    const { draft, outcome } =
      before === undefined
        ? {
            draft: newQuote({ id, sourceId: request.identity.id, cover, index }, input, request),
            outcome: 'created' as const,
          }
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

/** Replaces new stamps on many quotes by one stamp on the source, if both mean the same. */
function withCover(stored: StoredThread, plan: Pick<ThreadPlan, 'source' | 'quotes' | 'outcomes'>): ThreadPlan {
  const drafts = [...plan.quotes.values()]
  const cover = stored.source && coverOf(stored, drafts)
  if (cover === undefined) return { ...plan, quoteWrites: drafts.filter((draft) => draft.advanced) }
  const quoteWrites = drafts.filter((draft) => draft.changed).map((draft) => withOwnCover(cover, draft))
  const quotes = new Map([...plan.quotes, ...quoteWrites.map((draft) => [draft.document._id, draft] as const)])
  const { document } = plan.source
  const source = { ...plan.source, advanced: true, document: { ...document, meta: { ...document.meta, cover } } }
  return { ...plan, source, quotes, quoteWrites }
}

function withDigest(stored: StoredThread, requests: readonly InputThread[], plan: ThreadPlan): ThreadPlan {
  const { document } = plan.source
  const { digest: before, ...meta } = document.meta
  const digest = digestToKeep(stored, requests, plan)
  if (digest === undefined && before === undefined) return plan
  const source = {
    ...plan.source,
    document: { ...document, meta: { ...meta, ...(digest !== undefined && { digest }) } },
  }
  return { ...plan, source }
}

const RANK = { unchanged: 0, updated: 1, created: 2 }

/** Returns the stronger of two outcomes: a request may meet a document more than once. */
function strongerOutcome(one: Outcome, other: Outcome | undefined): Outcome {
  return other !== undefined && RANK[other] > RANK[one] ? other : one
}

/** Returns the outcome of a source that follows from its quotes alone. */
function sourceOutcomeFrom(quotes: readonly Outcome[]): Outcome {
  return quotes.every((outcome) => outcome === 'unchanged') ? 'unchanged' : 'updated'
}

/** Returns the digest to store on the source: the first request's, if it gave every field of every stored quote and no other process writes. */
function digestToKeep(
  { source: stored }: StoredThread,
  [request]: readonly InputThread[],
  { quotes }: Pick<ThreadPlan, 'quotes'>,
): string | undefined {
  if (request?.digest === undefined || stored?.meta.tokens !== undefined) return undefined
  let known = 0
  for (const draft of quotes.values()) {
    const { stamp, stamps } = draft.document.meta
    if (stamp !== request.stamp || stamps !== undefined) return undefined
    if (draft.stored !== undefined) known += 1
  }
  return known === (stored?.quoteCount ?? 0) ? request.digest : undefined
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

/** Makes the answer to each request of a stored thread, by the request's id. */
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
  const { _id, sourceId, position, wordCount, meta, createdAt, ...fields } = document
  return createdAt === undefined
    ? { id: _id, ...fields, outcome }
    : { id: _id, ...fields, createdAt: createdAt.toISOString(), outcome }
}
