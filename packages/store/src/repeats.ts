// Shortens the work for requests that repeat a stored thread: one stamp for all quotes (the cover), and a digest that makes reading them needless.
import type { SourceDocument } from './documents.ts'
import { newQuote } from './drafts.ts'
import { mergeSource, stampOfQuoteField } from './merge.ts'
import type { InputThread, QuoteDraft, StoredThread, ThreadPlan } from './thread.ts'

/**
 * Returns the stamp that can be stored on the source in place of new stamps on the quotes, or undefined. That requires that every stored quote was read, and that each field
 * keeps the stamp that the merge gives it. It is higher than the source's cover, which would otherwise include the quotes that it gives new stamps.
 */
export function coverOf({ source }: StoredThread, drafts: readonly QuoteDraft[]): number | undefined {
  const restamped = drafts.find(({ changed, advanced }) => advanced && !changed)
  const cover = restamped?.document.meta.stamp
  if (source === undefined || cover === undefined) return undefined
  // While another process writes, it may store quotes that were not read.
  if (source.meta.tokens !== undefined) return undefined
  if (drafts.filter((draft) => draft.stored !== undefined).length !== source.quoteCount) return undefined
  const isCovered = (draft: QuoteDraft) => draft.changed || keepsStamps(cover, draft, source.meta.cover ?? 0)
  return drafts.every(isCovered) ? cover : undefined
}

/** Returns whether the quote's fields have the stamps that the merge gives them if the source has this cover. */
function keepsStamps(cover: number, { document, stored, advanced }: QuoteDraft, coverBefore: number): boolean {
  if (advanced) {
    const { stamp, stamps } = document.meta
    return stamp === cover && stamps === undefined && (stored?.meta.cover ?? 0) < cover
  }
  const names = ['', ...Object.keys(document.meta.stamps ?? {})]
  return names.every((name) => stampOfQuoteField(document, name, coverBefore) >= cover)
}

/** Returns the draft of a quote whose own stamps include this cover. */
export function withOwnCover(cover: number, draft: QuoteDraft): QuoteDraft {
  const { document } = draft
  const meta = { ...document.meta, cover: Math.max(cover, document.meta.cover ?? 0) }
  return { ...draft, document: { ...document, meta } }
}

/**
 * Returns whether the request gives exactly the fields of the thread's last request, and that was the whole thread. Then only stamps move, and the quotes need not be
 * read. Never true while a process writes.
 */
export function isRepeat(source: SourceDocument | undefined, requests: readonly InputThread[]): boolean {
  const [request] = requests
  if (source === undefined || request === undefined || requests.length > 1) return false
  const { digest, tokens, stamp, cover = 0 } = source.meta
  if (digest === undefined || digest !== request.digest || tokens !== undefined) return false
  return request.stamp > Math.max(stamp, cover)
}

/** Returns the plan that `planThread` would make of a repeat after reading the quotes: one new cover, because the request gives all of them again. */
export function planRepeat(source: SourceDocument, request: InputThread): ThreadPlan {
  const before = { stored: source, document: source, changed: false, advanced: false }
  const { draft, outcome } = mergeSource(before, request.source, request)
  const { document } = draft
  const meta = request.quotes.length === 0 ? document.meta : { ...document.meta, cover: request.stamp }
  const cover = source.meta.cover ?? 0
  const quotes = request.quotes.map((input, index): [string, QuoteDraft] => {
    const id = request.quoteIds[index] ?? ''
    return [
      id,
      { ...newQuote({ id, sourceId: source._id, cover, index }, input, request), changed: false, advanced: false },
    ]
  })
  return {
    source: { ...draft, advanced: true, document: { ...document, meta } },
    quotes: new Map(quotes),
    quoteWrites: [],
    outcomes: [{ source: outcome, quotes: request.quotes.map(() => 'unchanged') }],
  }
}
