// Merges the requests of a batch into a thread that is stored, or that several of them begin.
import type { Outcome } from '@sluice/contract'
import type { Draft, InputThread, QuoteDraft, SourceDraft, StoredThread, ThreadPlan } from '../documents.ts'
import { newQuote, newSource } from './drafts.ts'
import { type Merged, mergeQuote, mergeSource } from './merge.ts'
import { shortenRepeats } from './repeats.ts'

/** Stands for a stored text that a newer request replaces. No request contains an empty text. */
export const REPLACED = ''

/** Merges requests, at least one and in the order of their stamps, into the stored thread. */
export function mergeRequests(stored: StoredThread, requests: readonly InputThread[]): ThreadPlan {
  const quotes = new Map<string, QuoteDraft>()
  const outcomes: ThreadPlan['outcomes'] = []
  let source = unmerged(stored.source)
  for (const request of requests) {
    const { draft, outcome }: Merged<SourceDraft> =
      source === undefined ? { draft: newSource(request), outcome: 'created' } : mergeSource(source, request)
    const merged = mergeQuotes(stored, request, quotes)
    source = merged.changed ? markChanged(draft, request.id) : draft
    const isUpdated = outcome === 'unchanged' && merged.outcomes.some((one) => one !== 'unchanged')
    outcomes.push({ source: isUpdated ? 'updated' : outcome, quotes: merged.outcomes })
  }
  if (source === undefined) throw new Error('there is no request to merge')
  const quoteWrites = [...quotes.values()].filter(({ advanced }) => advanced)
  const unread = quoteWrites.find(({ document }) => document.text === REPLACED)
  if (unread !== undefined) throw new Error(`the text of quote ${unread.document._id} was not read`)
  return shortenRepeats(stored, requests, { source, quotes, quoteWrites, outcomes })
}

/** Merges a request's quotes into the drafts. `changed`: the request changed a quote, now or in an earlier round. */
function mergeQuotes(
  stored: StoredThread,
  request: InputThread,
  drafts: Map<string, QuoteDraft>,
): { outcomes: Outcome[]; changed: boolean } {
  const { cover = 0, tokens = [] } = stored.source?.meta ?? {}
  const outcomes: Outcome[] = []
  let changed = false
  for (const quote of request.quotes) {
    const { _id } = quote.names
    const before = drafts.get(_id) ?? unmerged(stored.quotes.get(_id))
    const { draft, outcome }: Merged<QuoteDraft> =
      before === undefined
        ? { draft: newQuote(quote, request, cover), outcome: 'created' }
        : mergeQuote(before, quote, request, cover)
    drafts.set(_id, draft)
    outcomes.push(outcome)
    changed ||= draft.document !== before?.document && outcome !== 'unchanged'
  }
  const wroteBefore = tokens.some((token) => token.request === request.id)
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
