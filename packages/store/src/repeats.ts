import type { SourceDocument } from './documents.ts'
import { newQuote } from './drafts.ts'
import { mergeSource, stampOfQuoteField } from './merge.ts'
import type { InputThread, QuoteDraft, StoredThread, ThreadPlan } from './thread.ts'

// Shortcuts for requests that repeat what is stored: one stamp for all quotes (the cover), and a digest that spares reading them.

/**
 * The stamp that can stand on the source in place of new stamps on the quotes, or undefined. It can where every stored quote was read, and where each would count
 * afterwards as given when the merge says so.
 */
export function coverOf({ source }: StoredThread, drafts: readonly QuoteDraft[]): number | undefined {
  const restamped = drafts.find(({ changed, advanced }) => advanced && !changed)
  const cover = restamped?.document.meta.stamp
  if (source === undefined || cover === undefined || cover <= (source.meta.cover ?? 0)) return undefined
  // While somebody writes, quotes may be stored that were not read.
  if (source.meta.writers !== undefined) return undefined
  if (drafts.filter((draft) => draft.stored !== undefined).length !== source.quoteCount) return undefined
  const isCovered = (draft: QuoteDraft) => draft.changed || saysTheSame(cover, draft, source.meta.cover ?? 0)
  return drafts.every(isCovered) ? cover : undefined
}

/** The source's cover, set to this stamp, says of the quote just what the merge says of it. */
function saysTheSame(cover: number, { document, stored, advanced }: QuoteDraft, coverBefore: number): boolean {
  if (advanced) {
    const { stamp, stamps } = document.meta
    return stamp === cover && stamps === undefined && (stored?.meta.cover ?? 0) < cover
  }
  const names = ['', ...Object.keys(document.meta.stamps ?? {})]
  return names.every((name) => stampOfQuoteField(document, name, coverBefore) >= cover)
}

/** The draft of a quote whose own stamps account for this cover. */
export function withOwnCover(cover: number, draft: QuoteDraft): QuoteDraft {
  const { document } = draft
  const meta = { ...document.meta, cover: Math.max(cover, document.meta.cover ?? 0) }
  return { ...draft, document: { ...document, meta } }
}

/**
 * Whether the request gives exactly what the thread's last request gave, and that was the whole thread. Then only stamps move, and its quotes need not be
 * read. Never while somebody writes.
 */
export function isRepeat(source: SourceDocument | undefined, requests: readonly InputThread[]): boolean {
  const [request] = requests
  if (source === undefined || request === undefined || requests.length > 1) return false
  const { digest, writers, stamp, cover = 0 } = source.meta
  if (digest === undefined || digest !== request.digest || writers !== undefined) return false
  return request.stamp > Math.max(stamp, cover)
}

/** The plan that `planThread` would make of a repeat had it read the quotes: one new cover, as the request gives all of them again. */
export function planRepeat(source: SourceDocument, request: InputThread): ThreadPlan {
  const before = { stored: source, document: source, changed: false, advanced: false }
  const { draft, outcome } = mergeSource(before, request.source, request)
  const { document } = draft
  const meta = request.quotes.length === 0 ? document.meta : { ...document.meta, cover: request.stamp }
  const cover = source.meta.cover ?? 0
  const quotes = request.quotes.map((input, index): [string, QuoteDraft] => {
    const id = request.quoteIds[index] ?? ''
    return [id, { ...newQuote({ id, sourceId: source._id, cover }, input, request), changed: false, advanced: false }]
  })
  return {
    source: { ...draft, advanced: true, document: { ...document, meta } },
    quotes: new Map(quotes),
    quoteWrites: [],
    outcomes: [{ source: outcome, quotes: request.quotes.map(() => 'unchanged') }],
  }
}
