// Merges the requests of a batch for one thread into what is stored of it, or into a new thread.
import type { Outcome } from '@sluice/contract'
import type { InputThread, QuoteDraft, SourceDraft, StoredThread, ThreadPlan } from '../documents.ts'
import { newQuote, newSource } from './drafts.ts'
import { mergeQuote, mergeSource, unmerged } from './merge.ts'
import { shortenRepeats } from './repeats.ts'

/**
 * Stands for a stored text that was not read, because a newer request replaces it. No request contains an empty text.
 */
export const REPLACED = ''

/** Merges requests, at least one and in the order of their stamps, into the stored thread. */
export function mergeRequests(stored: StoredThread, requests: readonly InputThread[]): ThreadPlan {
  let source: SourceDraft | undefined = stored.source && unmerged(stored.source)
  const quotes = new Map<string, QuoteDraft>()
  const outcomes: ThreadPlan['outcomes'] = []
  for (const request of requests) {
    source = source === undefined ? newSource(request) : mergeSource(source, request)
    const merged = mergeQuotes(stored, request, quotes)
    const isUpdated = source.outcome === 'unchanged' && merged.outcomes.some((one) => one !== 'unchanged')
    outcomes.push({ source: isUpdated ? 'updated' : source.outcome, quotes: merged.outcomes })
    if (merged.changed) source = markChanged(source, request.id)
  }
  if (source === undefined) throw new Error('there is no request to merge')
  const quoteWrites = [...quotes.values()].filter(({ advanced }) => advanced)
  const unread = quoteWrites.find(({ document }) => document.text === REPLACED)
  if (unread !== undefined) throw new Error(`the text of quote ${unread.document._id} was not read`)
  return shortenRepeats(stored, requests, { source, quotes, quoteWrites, outcomes })
}

/**
 * Merges a request's quotes into the drafts. `changed`: the request changed a quote, now, in an earlier round, or in an
 * earlier delivery.
 */
function mergeQuotes(
  stored: StoredThread,
  request: InputThread,
  drafts: Map<string, QuoteDraft>,
): { outcomes: Outcome[]; changed: boolean } {
  const { cover = 0, tokens = [] } = stored.source?.meta ?? {}
  const wroteBefore = tokens.some((token) => token.request === request.id)
  let changed = false
  const outcomes = request.quotes.map((quote) => {
    const { _id } = quote.names
    const inStore = stored.quotes.get(_id)
    const before = drafts.get(_id) ?? (inStore && unmerged(inStore))
    const draft = before === undefined ? newQuote(quote, request, cover) : mergeQuote(before, quote, request, cover)
    drafts.set(_id, draft)
    changed ||= draft.outcome !== 'unchanged' && (wroteBefore || draft.document !== before?.document)
    return draft.outcome
  })
  return { outcomes, changed }
}

function markChanged(draft: SourceDraft, request: string): SourceDraft {
  if (draft.document.meta.insertedBy === request) return { ...draft, advanced: true }
  const meta = { ...draft.document.meta, changedBy: request }
  return { ...draft, document: { ...draft.document, meta }, advanced: true }
}
