// Saves work for repeats: requests that equal what is stored, and so change only stamps.
// - A source's cover is one stamp that replaces a new stamp on each quote.
// - A quote's own cover is the highest cover that its stamps include: only a higher cover of the
// source counts.
// - The digest of the last request shows that the next one is equal, so no quotes are read.
import type {
  InputThread,
  QuoteDraft,
  SourceDocument,
  SourceOrTombstone,
  StoredThread,
  ThreadPlan,
} from '../documents.ts'
import { newQuote } from './drafts.ts'
import { mergeSource, unmerged } from './merge.ts'

/**
 * Returns whether there is only one request, and it equals the last request of the source, which
 * contained all quotes. If so, no quotes need to be read.
 */
export function isRepeat(source: SourceOrTombstone, requests: readonly InputThread[]): boolean {
  const [request] = requests
  if (request === undefined || requests.length > 1) return false
  const { digest, tokens, stamp = 0, cover = 0 } = source.meta
  if (digest === undefined || digest !== request.digest || tokens !== undefined) return false
  return request.stamp > Math.max(stamp, cover)
}

/**
 * Returns the plan that a merge with the stored quotes would make: a new cover. Returns undefined
 * if this is no repeat.
 */
export function planRepeat(
  source: SourceDocument,
  requests: readonly InputThread[],
): ThreadPlan | undefined {
  const [request] = requests
  if (request === undefined || !isRepeat(source, requests)) return undefined
  const draft = mergeSource(unmerged(source), request)
  const { document, outcome } = draft
  const meta =
    request.quotes.length === 0 ? document.meta : { ...document.meta, cover: request.stamp }
  const cover = source.meta.cover ?? 0
  const quotes = request.quotes.map((quote) => unmerged(newQuote(quote, request, cover).document))
  return {
    source: { ...draft, advanced: true, document: { ...document, meta } },
    quotes: new Map(quotes.map((draft) => [draft.document._id, draft])),
    quoteWrites: [],
    outcomes: [{ source: outcome, quotes: request.quotes.map(() => 'unchanged') }],
  }
}

/** Shortens a plan: replaces many stamps by a cover, and sets the digest to keep. */
export function shortenRepeats(
  stored: StoredThread,
  requests: readonly InputThread[],
  merged: ThreadPlan,
): ThreadPlan {
  const plan = withCover(stored, merged)
  const { document } = plan.source
  const { digest: _, ...others } = document.meta
  const digest = digestToKeep(stored, requests, plan)
  const meta = { ...others, ...(digest !== undefined && { digest }) }
  return { ...plan, source: { ...plan.source, document: { ...document, meta } } }
}

/** Replaces the quotes' new stamps by a cover of their source, if both have the same effect. */
function withCover(stored: StoredThread, plan: ThreadPlan): ThreadPlan {
  const drafts = [...plan.quotes.values()]
  const cover = stored.source && coverOf(stored, drafts)
  if (cover === undefined) return plan
  const quoteWrites = drafts
    .filter((draft) => draft.changed)
    .map((draft) => withOwnCover(cover, draft))
  const quotes = new Map([
    ...plan.quotes,
    ...quoteWrites.map((draft) => [draft.document._id, draft] as const),
  ])
  const { document } = plan.source
  const source = {
    ...plan.source,
    advanced: true,
    document: { ...document, meta: { ...document.meta, cover } },
  }
  return { ...plan, source, quotes, quoteWrites }
}

/**
 * Returns the cover that can replace the quotes' new stamps. Returns undefined if a field would
 * then have another stamp than the merge sets.
 */
function coverOf({ source }: StoredThread, drafts: readonly QuoteDraft[]): number | undefined {
  const restamped = drafts.find(({ changed, advanced }) => advanced && !changed)
  const cover = restamped?.document.meta.stamp
  if (source === undefined || cover === undefined) return undefined
  // A process that is writing may store quotes that this one has not read.
  if (source.meta.tokens !== undefined) return undefined
  if (drafts.filter((draft) => draft.stored !== undefined).length !== source.quoteCount)
    return undefined
  const isCovered = (draft: QuoteDraft) =>
    draft.changed || (draft.advanced && hasStamp(draft, cover))
  return drafts.every(isCovered) ? cover : undefined
}

/**
 * Returns whether the merge set this stamp on each field of the quote, as a cover with this stamp
 * would.
 */
function hasStamp({ document: { meta }, stored }: QuoteDraft, stamp: number): boolean {
  return meta.stamp === stamp && meta.stamps === undefined && (stored?.meta.cover ?? 0) < stamp
}

/**
 * Returns the draft with this cover as the quote's own, so that the source's cover changes no stamp
 * of the quote.
 */
function withOwnCover(cover: number, { document, ...draft }: QuoteDraft): QuoteDraft {
  const meta = { ...document.meta, cover: Math.max(cover, document.meta.cover ?? 0) }
  return { ...draft, document: { ...document, meta } }
}

/**
 * Returns the digest of the first request if that request contains every field of every stored
 * quote, and no other process is writing.
 */
function digestToKeep(
  { source: stored }: StoredThread,
  [request]: readonly InputThread[],
  { quotes }: Pick<ThreadPlan, 'quotes'>,
): string | undefined {
  if (request?.digest === undefined || stored?.meta.tokens !== undefined) return undefined
  // A quote of it may be deleted, and would be stored again by the next request.
  if (request.quotes.some(({ names }) => !quotes.has(names._id))) return undefined
  let known = 0
  for (const draft of quotes.values()) {
    const { stamp, stamps } = draft.document.meta
    if (stamp !== request.stamp || stamps !== undefined) return undefined
    if (draft.stored !== undefined) known += 1
  }
  return known === (stored?.quoteCount ?? 0) ? request.digest : undefined
}
