import type { Outcome } from '@sluice/contract'
import type { QuoteDocument, SourceDocument } from './documents.ts'
import type { GivenThread } from './given-thread.ts'
import { mergeQuote, type QuoteDraft, stampOfQuoteField } from './merge-quote.ts'
import { mergeSource, type SourceDraft } from './merge-source.ts'
import { sourceOutcomeFrom, strongerOutcome } from './outcome-of.ts'
import { digestToKeep, isRepeat, planRepeat } from './plan-repeat.ts'
import type { RequestOutcome, StoredThread, ThreadPlan } from './thread-plan.ts'

/**
 * Merges requests for one thread, given in the order of their stamps, into what was read of it. Pure: the five laws rest on this function
 * and on the guards of those who write what it plans.
 */
export function planThread(stored: StoredThread, requests: readonly GivenThread[]): ThreadPlan {
  const [first] = requests
  if (stored.source !== undefined && first !== undefined && isRepeat(stored.source, requests))
    return planRepeat(stored.source, first)
  let source: SourceDraft | undefined = stored.source && untouched(stored.source)
  const quotes = new Map<string, QuoteDraft>()
  const outcomes: RequestOutcome[] = []
  const cover = stored.source?.meta.cover ?? 0
  for (const request of requests) {
    const merged = mergeSource(source, request.name, request.source, request)
    const told: Outcome[] = []
    let changedAQuote = false
    request.quotes.forEach((given, index) => {
      const id = request.quoteIds[index] ?? ''
      const draft = quotes.get(id) ?? untouchedQuote(stored.quotes.get(id))
      const place = { id, sourceId: request.name.id, cover }
      const result = mergeQuote(draft, place, given, request)
      quotes.set(id, result.draft)
      told.push(result.outcome)
      changedAQuote ||= result.draft.document !== draft?.document && result.outcome !== 'unchanged'
    })
    changedAQuote ||= isUncommitted(stored, request.id) && told.some((outcome) => outcome !== 'unchanged')
    source = changedAQuote ? changedBy(merged.draft, request.id) : merged.draft
    outcomes.push({ source: strongerOutcome(merged.outcome, sourceOutcomeFrom(told)), quotes: told })
  }
  if (source === undefined) throw new Error('planThread needs at least one request')
  return withDigest(stored, requests, withCover(stored, { source, quotes, outcomes }))
}

function withDigest(stored: StoredThread, requests: readonly GivenThread[], plan: ThreadPlan): ThreadPlan {
  const { document } = plan.source
  const { digest: _before, ...meta } = document.meta
  const digest = digestToKeep(stored, requests, plan)
  return {
    ...plan,
    source: { ...plan.source, document: { ...document, meta: digest === undefined ? meta : { ...meta, digest } } },
  }
}

function untouched(source: SourceDocument): SourceDraft {
  return { stored: source, document: source, changed: false, advanced: false }
}

function untouchedQuote(quote: QuoteDocument | undefined): QuoteDraft | undefined {
  return quote && { stored: quote, document: quote, changed: false, advanced: false }
}

/** Its quotes were written by an earlier round or delivery, but its source was not committed since. */
function isUncommitted({ source }: StoredThread, request: string): boolean {
  return source?.meta.writers?.some((writer) => writer.request === request) === true
}

function changedBy(draft: SourceDraft, request: string): SourceDraft {
  if (draft.document.meta.insertedBy === request) return { ...draft, changed: true }
  const meta = { ...draft.document.meta, changedBy: request }
  return { ...draft, document: { ...draft.document, meta }, changed: true }
}

/**
 * Quotes of which only the stamps move need not be written one by one where one stamp on the source can say the same: when every quote
 * that is stored was read, and each would afterwards count as said when the merge says so.
 */
function withCover(stored: StoredThread, plan: Omit<ThreadPlan, 'quoteWrites'>): ThreadPlan {
  const drafts = [...plan.quotes.values()]
  const cover = coverOf(stored, drafts)
  if (cover === undefined) return { ...plan, quoteWrites: drafts.filter((draft) => draft.advanced) }
  const quoteWrites = drafts.filter((draft) => draft.changed).map((draft) => reckonWith(cover, draft))
  for (const draft of quoteWrites) plan.quotes.set(draft.document._id, draft)
  const { document } = plan.source
  const source = { ...plan.source, advanced: true, document: { ...document, meta: { ...document.meta, cover } } }
  return { ...plan, source, quoteWrites }
}

function coverOf({ source }: StoredThread, drafts: QuoteDraft[]): number | undefined {
  const restamped = drafts.filter(({ changed, advanced }) => advanced && !changed)
  const cover = restamped[0]?.document.meta.stamp
  if (source === undefined || cover === undefined || cover <= (source.meta.cover ?? 0)) return undefined
  // While somebody writes, there may be quotes that were not read.
  if (source.meta.writers !== undefined) return undefined
  if (drafts.filter((draft) => draft.stored !== undefined).length !== source.quoteCount) return undefined
  const said = (draft: QuoteDraft) => draft.changed || isSaidBy(cover, draft, source.meta.cover ?? 0)
  return drafts.every(said) ? cover : undefined
}

/** The source's cover, set to this stamp, would say of the quote just what the merge says of it. */
function isSaidBy(cover: number, { document, stored, advanced }: QuoteDraft, coverBefore: number): boolean {
  if (advanced) {
    const { stamp, stamps } = document.meta
    return stamp === cover && stamps === undefined && (stored?.meta.cover ?? 0) < cover
  }
  const names = ['', ...Object.keys(document.meta.stamps ?? {})]
  return names.every((name) => stampOfQuoteField(document, name, coverBefore) >= cover)
}

function reckonWith(cover: number, draft: QuoteDraft): QuoteDraft {
  const { document } = draft
  const meta = { ...document.meta, cover: Math.max(cover, document.meta.cover ?? 0) }
  return { ...draft, document: { ...document, meta } }
}
