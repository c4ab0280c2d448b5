// Shortens the work for repeats of a stored thread: one stamp for all quotes (the cover), and a digest instead of
// reads.
import type { InputThread, QuoteDraft, SourceDocument, StoredThread, ThreadPlan } from '../documents.ts'
import { newQuote } from './drafts.ts'
import { mergeSource, stampOfField, unmerged } from './merge.ts'

/**
 * Returns whether the only request repeats the source's last request, which contained all quotes. Then only stamps
 * move, and no quotes are read. Never true while the source has a token.
 */
export function isRepeat(source: SourceDocument, requests: readonly InputThread[]): boolean {
  const [request] = requests
  if (request === undefined || requests.length > 1) return false
  const { digest, tokens, stamp, cover = 0 } = source.meta
  if (digest === undefined || digest !== request.digest || tokens !== undefined) return false
  return request.stamp > Math.max(stamp, cover)
}

/**
 * Returns the plan that `mergeRequests` would make from the stored quotes: one new cover. Undefined if the request is
 * no repeat.
 */
export function planRepeat(source: SourceDocument, requests: readonly InputThread[]): ThreadPlan | undefined {
  const [request] = requests
  if (request === undefined || !isRepeat(source, requests)) return undefined
  const draft = mergeSource(unmerged(source), request)
  const { document, outcome } = draft
  const meta = request.quotes.length === 0 ? document.meta : { ...document.meta, cover: request.stamp }
  const cover = source.meta.cover ?? 0
  const quotes = request.quotes.map((quote): [string, QuoteDraft] => {
    return [quote.names._id, unmerged(newQuote(quote, request, cover).document)]
  })
  return {
    source: { ...draft, advanced: true, document: { ...document, meta } },
    quotes: new Map(quotes),
    quoteWrites: [],
    outcomes: [{ source: outcome, quotes: request.quotes.map(() => 'unchanged') }],
  }
}

/** Shortens a plan: a cover in place of many stamps, and the digest to keep. */
export function shortenRepeats(stored: StoredThread, requests: readonly InputThread[], plan: ThreadPlan): ThreadPlan {
  return withDigest(stored, requests, withCover(stored, plan))
}

/** Replaces new stamps on many quotes by one stamp on the source, if both mean the same. */
function withCover(stored: StoredThread, plan: ThreadPlan): ThreadPlan {
  const drafts = [...plan.quotes.values()]
  const cover = stored.source && coverOf(stored, drafts)
  if (cover === undefined) return plan
  const quoteWrites = drafts.filter((draft) => draft.changed).map((draft) => withOwnCover(cover, draft))
  const quotes = new Map([...plan.quotes, ...quoteWrites.map((draft) => [draft.document._id, draft] as const)])
  const { document } = plan.source
  const source = { ...plan.source, advanced: true, document: { ...document, meta: { ...document.meta, cover } } }
  return { ...plan, source, quotes, quoteWrites }
}

/**
 * Returns the stamp that the source can store in place of new stamps on its quotes, or undefined. All stored quotes
 * must have been read, and each field must keep the stamp of the merge.
 */
function coverOf({ source }: StoredThread, drafts: readonly QuoteDraft[]): number | undefined {
  const restamped = drafts.find(({ changed, advanced }) => advanced && !changed)
  const cover = restamped?.document.meta.stamp
  if (source === undefined || cover === undefined) return undefined
  // While another process writes, it may store quotes that were not read.
  if (source.meta.tokens !== undefined) return undefined
  if (drafts.filter((draft) => draft.stored !== undefined).length !== source.quoteCount) return undefined
  const isCovered = (draft: QuoteDraft) => draft.changed || keepsStamps(cover, draft, source.meta.cover ?? 0)
  return drafts.every(isCovered) ? cover : undefined
}

/** Returns whether each field of the quote has the same stamp with the new cover as after the merge. */
function keepsStamps(cover: number, { document, stored, advanced }: QuoteDraft, coverBefore: number): boolean {
  if (advanced) {
    const { stamp, stamps } = document.meta
    return stamp === cover && stamps === undefined && (stored?.meta.cover ?? 0) < cover
  }
  const names = ['', ...Object.keys(document.meta.stamps ?? {})]
  return names.every((name) => stampOfField(document, name, coverBefore) >= cover)
}

/** Returns the draft with this cover as the quote's own. The source's cover then changes no stamp of the quote. */
function withOwnCover(cover: number, draft: QuoteDraft): QuoteDraft {
  const { document } = draft
  const meta = { ...document.meta, cover: Math.max(cover, document.meta.cover ?? 0) }
  return { ...draft, document: { ...document, meta } }
}

function withDigest(stored: StoredThread, requests: readonly InputThread[], plan: ThreadPlan): ThreadPlan {
  const { document } = plan.source
  const { digest: _, ...others } = document.meta
  const digest = digestToKeep(stored, requests, plan)
  const meta = { ...others, ...(digest !== undefined && { digest }) }
  return { ...plan, source: { ...plan.source, document: { ...document, meta } } }
}

/**
 * Returns the first request's digest if that request contains every field of every stored quote, and no other process
 * writes.
 */
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
