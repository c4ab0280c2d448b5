// Plans what requests make of a stored thread or a new one. The functions are pure, because law 1
// (docs/glossary.md) needs that.
//
// Repeats, which equal what is stored, change only stamps, and get shorter plans:
// - A source's cover is one stamp that replaces a new stamp on each quote.
// - A quote's own cover is the highest cover that its stamps include: only a higher cover of the
// source counts.
// - The digest of the last request shows that the next one is equal, so no quotes are read.
import { ERASED, type Outcome, withErased } from '@sluice/contract'
import { deletedUpTo } from '../deletions.ts'
import {
  acceptedAtOf,
  type Draft,
  foldStamps,
  type InputQuote,
  type InputThread,
  inputOfQuote,
  inputOfSource,
  isLive,
  type QuoteDocument,
  type QuoteDraft,
  type SourceDocument,
  type SourceDraft,
  type SourceMarks,
  type SourceOrTombstone,
  type StoredThread,
  stampOfField,
  type ThreadPlan,
  withDerived,
  withDerivedScore,
} from '../documents.ts'
import { listKeyOf } from '../ids.ts'
import { joinErased, newQuote, newSource, planNew, staysErased, UNCOUNTED } from './drafts.ts'

/**
 * Stands for a stored text that was not read, because a newer request replaces it. No request has
 * an empty text.
 */
export const REPLACED = ''

/** Plans requests for one thread, in the order of their stamps. */
export function planThread(stored: StoredThread, requests: readonly InputThread[]): ThreadPlan {
  const [first] = requests
  if (stored.source === undefined && first && !first.redacts && requests.length === 1)
    return planNew(first)
  const { source } = stored
  const repeat = source && isLive(source) && planRepeat(source, requests)
  const live = requests.filter(({ stamp }) => stamp > deletedUpTo(source))
  return repeat || shortenRepeats(stored, live, mergeRequests(stored, requests))
}

/** Merges requests into the stored thread: at least one, in the order of their stamps. */
function mergeRequests(stored: StoredThread, requests: readonly InputThread[]): ThreadPlan {
  const { source: before } = stored
  let source = before && isLive(before) ? unmerged(before) : undefined
  const quotes = new Map<string, QuoteDraft>()
  const outcomes: ThreadPlan['outcomes'] = []
  for (const request of requests) {
    if (request.redacts && (source === undefined || isBefore(request, source))) {
      outcomes.push({ source: 'unchanged', quotes: [] })
      continue
    }
    if (request.stamp <= deletedUpTo(before)) {
      outcomes.push({ source: 'deleted', quotes: request.quotes.map(() => 'deleted') })
      continue
    }
    source = source === undefined ? newSource(request, before) : mergeSource(source, request)
    const merged = mergeQuotes(stored, request, quotes)
    const isUpdated =
      source.outcome === 'unchanged' &&
      merged.outcomes.some((one) => one === 'created' || one === 'updated')
    outcomes.push({ source: isUpdated ? 'updated' : source.outcome, quotes: merged.outcomes })
    if (merged.changed) source = markChanged(source, request.id)
  }
  const draft = source ?? (before && unmerged(before))
  if (draft === undefined) throw new Error('there is no request to merge')
  const quoteWrites = [...quotes.values()].filter(({ advanced }) => advanced)
  const unread = quoteWrites.find(({ document }) => document.text === REPLACED)
  if (unread !== undefined) throw new Error(`the text of quote ${unread.document._id} was not read`)
  return { source: draft, quotes, quoteWrites, outcomes }
}

/**
 * Merges a request's quotes into the drafts. `changed`: this delivery of the request, or an earlier
 * one, changed a quote.
 */
function mergeQuotes(stored: StoredThread, request: InputThread, drafts: Map<string, QuoteDraft>) {
  const { meta: marks = {} } = stored.source ?? {}
  const { cover = 0, tokens = [] } = stored.source?.meta ?? {}
  const wroteBefore = tokens.some((token) => token.request === request.id)
  let changed = false
  const outcomes = request.quotes.map((quote) => {
    const { _id } = quote.names
    if (request.stamp <= deletedUpTo(stored.source, _id)) return 'deleted'
    const inStore = stored.quotes.get(_id)
    const before = drafts.get(_id) ?? (inStore && unmerged(inStore))
    if (before === undefined && request.redacts) return 'unchanged'
    const draft =
      before === undefined
        ? newQuote(quote, request, cover)
        : mergeQuote(before, quote, request, marks)
    drafts.set(_id, draft)
    changed ||=
      draft.outcome !== 'unchanged' && (wroteBefore || draft.document !== before?.document)
    return draft.outcome
  })
  return { outcomes, changed }
}

/** Returns whether all of the source was accepted after this request. */
function isBefore({ stamp }: InputThread, { document }: SourceDraft): boolean {
  return acceptedAtOf(stamp) < document.acceptedAt
}

function markChanged(draft: SourceDraft, request: string): SourceDraft {
  if (draft.document.meta.insertedBy === request) return { ...draft, advanced: true }
  const meta = { ...draft.document.meta, changedBy: request }
  return { ...draft, document: { ...draft.document, meta }, advanced: true }
}

/**
 * Merges field by field: the request that was accepted last wins, and a field that it leaves out is
 * kept. So merging is commutative, associative and idempotent, as no two requests for one source
 * have the same stamp.
 */
function mergeValues<Some extends object>(
  stored: Some,
  stampOf: (name: string) => number,
  input: Some,
  stamp: number,
) {
  const values = { ...stored }
  const stamps: Record<string, number> = {}
  for (const name in stored) stamps[name] = stampOf(name)
  let changed = false
  let advanced = false
  for (const name in input) {
    if (stamp <= (stamps[name] ?? Number.NEGATIVE_INFINITY)) continue
    stamps[name] = stamp
    advanced = true
    if (sameValue(values[name], input[name])) continue
    values[name] = input[name]
    changed = true
  }
  return { values, stamps: foldStamps(stamps), changed, advanced }
}

function sameValue(one: unknown, other: unknown): boolean {
  if (one instanceof Date && other instanceof Date) return one.getTime() === other.getTime()
  return one === other
}

/** Makes the draft of a stored document that no request has changed. */
function unmerged<Stored>(stored: Stored): Draft<Stored> {
  return { stored, document: stored, changed: false, advanced: false, outcome: 'unchanged' }
}

/** Merges a request's fields of the source into the draft. */
function mergeSource(draft: SourceDraft, request: InputThread): SourceDraft {
  if (request.redacts === 'quotes') return { ...draft, outcome: 'unchanged' }
  const before = draft.document
  const stampOf = (name: string) => stampOfField(before, name, 0)
  const erased = joinErased(before.meta.erased, request.erased)
  const redacts = staysErased(erased, request)
  const stored = inputOfSource(before)
  // Erase the stored fields even if they were accepted later: they were stored before the erasure.
  const known = withErased(redacts, stored)
  const input = withErased(redacts, request.source)
  const merged = mergeValues(known, stampOf, input, request.stamp)
  const isEarlier = acceptedAtOf(request.stamp) < before.acceptedAt
  const acceptedAt = isEarlier ? acceptedAtOf(request.stamp) : before.acceptedAt
  const { values, derived } = withDerived(merged.values, acceptedAt)
  const isErased = stored.title !== known.title || stored.channelName !== known.channelName
  const changed = merged.changed || isErased || !sameValue(values.createdAt, before.createdAt)
  const outcome = outcomeOf(request, before.meta, { changed, advanced: merged.advanced })
  if (!merged.advanced && !isEarlier && !isErased) return { ...draft, outcome }
  const { _id, tenant, service, externalId, status, wordCount, quoteCount } = before
  const { stamps: _older, derived: _derived, erased: _erased, ...kept } = before.meta
  const document: SourceDocument = {
    ...{ _id, tenant, service, externalId, status, wordCount, quoteCount },
    ...values,
    acceptedAt,
    meta: {
      ...kept,
      ...(isEarlier && { listKey: listKeyOf(tenant, acceptedAt, _id) }),
      ...merged.stamps,
      ...derived,
      ...(values.title === ERASED && Object.keys(erased).length > 0 && { erased }),
      ...(changed && { changedBy: request.id }),
    },
  }
  return { ...draft, document, changed: draft.changed || changed, advanced: true, outcome }
}

/**
 * Merges a request's fields of a quote into the draft. A smaller position is stored, but does not
 * count as an update.
 */
function mergeQuote(
  draft: QuoteDraft,
  input: InputQuote,
  request: InputThread,
  { cover = 0, deletion }: SourceMarks,
): QuoteDraft {
  const before = draft.document
  const { position } = input.names
  const stampOf = (name: string) => stampOfField(before, name, cover)
  const { values, stamps, changed, advanced } = mergeValues(
    inputOfQuote(before),
    stampOf,
    input.values,
    request.stamp,
  )
  const isMoved = position < before.position
  // An earlier delivery of the request would have set this smaller position. So none has merged the
  // quote, and it counts as advanced. After a deletion, this proves nothing: the stored position
  // may be larger than what any post set.
  const isNew = advanced || (isMoved && deletion === undefined)
  const outcome = outcomeOf(request, before.meta, { changed, advanced: isNew })
  if (!advanced && !isMoved) return { ...draft, outcome }
  const { stamps: _older, derived: _derived, ...kept } = before.meta
  const { values: full, derived } = withDerivedScore(values)
  const document: QuoteDocument = {
    _id: before._id,
    sourceId: before.sourceId,
    position: isMoved ? position : before.position,
    ...full,
    wordCount: values.text === before.text ? before.wordCount : UNCOUNTED,
    meta: {
      ...kept,
      ...stamps,
      ...derived,
      ...(changed && { changedBy: request.id }),
      ...(cover > 0 && { cover: Math.max(cover, before.meta.cover ?? 0) }),
    },
  }
  return {
    ...draft,
    document,
    changed: draft.changed || changed || isMoved,
    advanced: true,
    outcome,
  }
}

/**
 * Returns the outcome of a request for one document. If an earlier delivery of the request has
 * stored it already, this delivery changes nothing, and returns the outcome of the earlier
 * delivery, or `updated` if that is not known.
 */
function outcomeOf(
  request: InputThread,
  stored: { insertedBy: string; changedBy?: string },
  merged: { changed: boolean; advanced: boolean },
): Outcome {
  if (stored.insertedBy === request.id) return 'created'
  if (merged.changed || stored.changedBy === request.id) return 'updated'
  const mayHaveChangedBefore =
    request.redelivered && !merged.advanced && stored.changedBy !== undefined
  return mayHaveChangedBefore ? 'updated' : 'unchanged'
}

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
function planRepeat(
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
function shortenRepeats(
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
  // If one of its quotes was deleted, the next equal request must store it again, so that one is no
  // repeat.
  if (request.quotes.some(({ names }) => !quotes.has(names._id))) return undefined
  let known = 0
  for (const draft of quotes.values()) {
    const { stamp, stamps } = draft.document.meta
    if (stamp !== request.stamp || stamps !== undefined) return undefined
    if (draft.stored !== undefined) known += 1
  }
  return known === (stored?.quoteCount ?? 0) ? request.digest : undefined
}
