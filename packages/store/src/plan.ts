import type { Outcome } from '@sluice/contract'
import {
  type Draft,
  newQuote,
  newSource,
  type QuoteDraft,
  type RequestOutcome,
  type SourceDraft,
  type StoredThread,
  type ThreadPlan,
} from './drafts.ts'
import { mergeQuote, mergeSource } from './merge.ts'
import { coverOf, digestToKeep, isRepeat, planRepeat, withOwnCover } from './repeats.ts'
import type { InputThread } from './requests.ts'

// Plans what the store must write so that all requests for one thread are in it.

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
    const merged = source === undefined ? created(request) : mergeSource(source, request.source, request)
    const quoteOutcomes = mergeQuotes(stored, request, quotes, cover)
    const quotesOutcome = sourceOutcomeFrom(quoteOutcomes.outcomes)
    source = quoteOutcomes.changed ? changedBy(merged.draft, request.id) : merged.draft
    outcomes.push({ source: strongerOutcome(merged.outcome, quotesOutcome), quotes: quoteOutcomes.outcomes })
  }
  if (source === undefined) throw new Error('planThread needs at least one request')
  return withDigest(stored, requests, withCover(stored, { source, quotes, outcomes }))
}

function created(request: InputThread): { draft: SourceDraft; outcome: Outcome } {
  return { draft: newSource(request.name, request.source, request), outcome: 'created' }
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
        ? { draft: newQuote({ id, sourceId: request.name.id, cover }, input, request), outcome: 'created' as const }
        : mergeQuote(before, cover, input, request)
    drafts.set(id, draft)
    outcomes.push(outcome)
    changed ||= draft.document !== before?.document && outcome !== 'unchanged'
  })
  const wroteBefore = stored.source?.meta.writers?.some((token) => token.request === request.id) === true
  changed ||= wroteBefore && outcomes.some((outcome) => outcome !== 'unchanged')
  return { outcomes, changed }
}

function unmerged<Stored>(stored: Stored | undefined): Draft<Stored> | undefined {
  return stored && { stored, document: stored, changed: false, advanced: false }
}

function changedBy(draft: SourceDraft, request: string): SourceDraft {
  if (draft.document.meta.insertedBy === request) return { ...draft, changed: true }
  const meta = { ...draft.document.meta, changedBy: request }
  return { ...draft, document: { ...draft.document, meta }, changed: true }
}

/** Replaces the restamping of many quotes by one stamp on the source, where the two mean the same. */
function withCover(stored: StoredThread, plan: Pick<ThreadPlan, 'source' | 'quotes' | 'outcomes'>): ThreadPlan {
  const drafts = [...plan.quotes.values()]
  const cover = coverOf(stored, drafts)
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

/** The stronger of two outcomes: a request may meet a document more than once. */
export function strongerOutcome(one: Outcome, other: Outcome | undefined): Outcome {
  return other !== undefined && RANK[other] > RANK[one] ? other : one
}

/** The outcome of a source of which only quotes changed. */
export function sourceOutcomeFrom(quotes: readonly Outcome[]): Outcome {
  return quotes.every((outcome) => outcome === 'unchanged') ? 'unchanged' : 'updated'
}
