import type { SourceDocument } from './documents.ts'
import type { GivenThread } from './given-thread.ts'
import { mergeQuote, type QuoteDraft } from './merge-quote.ts'
import { mergeSource } from './merge-source.ts'
import type { StoredThread, ThreadPlan } from './thread-plan.ts'

/**
 * Whether these requests say just what the thread's last request said, and that was all of the thread: then nothing but stamps moves, and its quotes need not
 * be read. Never while somebody writes.
 */
export function isRepeat(source: SourceDocument | undefined, requests: readonly GivenThread[]): boolean {
  const [request] = requests
  if (source === undefined || request === undefined || requests.length > 1) return false
  const { digest, writers, stamp, cover = 0 } = source.meta
  return (
    digest !== undefined && digest === request.digest && writers === undefined && request.stamp > Math.max(stamp, cover)
  )
}

/** What `planThread` would plan for such a request had it read the quotes: one new cover, as all of them are said again. */
export function planRepeat(source: SourceDocument, request: GivenThread): ThreadPlan {
  const before = { stored: source, document: source, changed: false, advanced: false }
  const { draft, outcome } = mergeSource(before, request.name, request.source, request)
  const { document } = draft
  const meta = request.quotes.length === 0 ? document.meta : { ...document.meta, cover: request.stamp }
  return {
    source: { ...draft, advanced: true, document: { ...document, meta } },
    quotes: new Map(request.quotes.map((given, at) => asStored(source, request, given, request.quoteIds[at] ?? ''))),
    quoteWrites: [],
    outcomes: [{ source: outcome, quotes: request.quotes.map(() => 'unchanged') }],
  }
}

function asStored(
  { _id, meta }: SourceDocument,
  request: GivenThread,
  given: GivenThread['quotes'][number],
  id: string,
): [string, QuoteDraft] {
  const { draft } = mergeQuote(undefined, { id, sourceId: _id, cover: meta.cover ?? 0 }, given, request)
  return [id, { ...draft, changed: false, advanced: false }]
}

/**
 * The digest to keep: the request's, where every stored quote is one of its own and every field was said by it, and nobody else is writing.
 */
export function digestToKeep(
  { source: stored }: StoredThread,
  requests: readonly GivenThread[],
  { source, quotes }: Pick<ThreadPlan, 'source' | 'quotes'>,
): string | undefined {
  const [request] = requests
  if (request?.digest === undefined || requests.length > 1 || stored?.meta.writers !== undefined) return undefined
  const drafts = [...quotes.values()]
  const isAll = drafts.filter((draft) => draft.stored !== undefined).length === (stored?.quoteCount ?? 0)
  const isSaid = drafts.every(
    ({ document: { meta } }) =>
      meta.stamp === request.stamp && meta.stamps === undefined && (meta.cover ?? 0) <= request.stamp,
  )
  return isAll && isSaid && source.document.meta.stamp === request.stamp ? request.digest : undefined
}
