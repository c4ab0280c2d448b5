// Compares what callers were told with what is stored. Callers record it outside of everything
// under test.
import { isLive, type QuoteDocument, type SourceDocument } from '@sluice/store'
import type { Posted } from './post-thread.ts'

/**
 * How the store differs from what callers were told; each list names threads, or quotes as
 * `thread/quote`. All are empty if every promise holds.
 */
export interface Differences {
  /** Accepted, and not stored. */
  lost: string[]
  storedTwice: string[]
  /** Stored, although nobody posted it, every request for it was refused, or it was deleted. */
  neverAccepted: string[]
  /** Its content is that of a refused request, or of one that an accepted request replaced. */
  outdated: string[]
  /** The totals of a source are not those of its quotes, or quotes have no source. */
  wrongTotals: string[]
}

/** What a caller knows about its request: it is or will be stored, it never will be, or either. */
export function fateOf({
  status,
  body,
}: Pick<Posted, 'status' | 'body'>): 'accepted' | 'refused' | 'unknown' {
  if (status === 504) return body.code === 'acceptance_unknown' ? 'unknown' : 'accepted'
  if (status === 200 || status === 202) return 'accepted'
  // A job that failed for good may have stored a part.
  return status === 'none' || status === 500 ? 'unknown' : 'refused'
}

/**
 * Whether an API that can reach Redis had no time for a request: its machine is busy. No test of
 * another fault is about it.
 */
function isBusy({ status, body }: Pick<Posted, 'status' | 'body'>): boolean {
  if (status === 503) return body.code === 'queue_unavailable' || body.code === 'overloaded'
  return body.code === 'acceptance_unknown'
}

/** The different statuses of these answers, in order, without those of a busy API. */
export function statusesOf(posted: readonly Posted[]): Posted['status'][] {
  return [...new Set(posted.filter((answer) => !isBusy(answer)).map(({ status }) => status))].sort()
}

/** Finds every difference. Call it when no job is left and every token is closed. */
export function compare(
  requests: readonly Posted[],
  sources: readonly SourceDocument[],
  quotes: readonly QuoteDocument[],
): Differences {
  const live = sources.filter(isLive)
  const stored = storedNames(live, quotes)
  const names = new Set(stored)
  const posted = leftOf(requests)
  const accepted = posted.filter((answer) => fateOf(answer) === 'accepted')
  const possible = posted.filter((answer) => fateOf(answer) !== 'refused')
  const possibleNames = new Set(possible.flatMap(namesOf))
  return {
    lost: [...new Set(accepted.flatMap(namesOf))].filter((name) => !names.has(name)),
    storedTwice: repeatsIn(stored),
    neverAccepted: [...names].filter((name) => !possibleNames.has(name)),
    outdated: outdated(possible, live),
    wrongTotals: wrongTotals(sources, quotes),
  }
}

/**
 * The posts that no deletion followed. If one may have followed, nobody knows whether a post is
 * stored.
 */
function leftOf(requests: readonly Posted[]): Posted[] {
  const deletions = Map.groupBy(
    requests.filter(({ deletes }) => deletes),
    ({ externalId }) => externalId,
  )
  const fatesAfter = ({ externalId, status, sentAt, ms }: Posted) =>
    (deletions.get(externalId) ?? [])
      .filter((deletion) => status !== 'none' && sentAt + ms <= deletion.sentAt)
      .map(fateOf)
  return requests.flatMap((post) => {
    const fates = fatesAfter(post)
    if (post.deletes || fates.includes('accepted')) return []
    const isUnsure = fates.includes('unknown') && fateOf(post) === 'accepted'
    return isUnsure ? { ...post, status: 'none' } : post
  })
}

/**
 * The sources of which the totals are not those of their quotes, and the quotes without a source.
 */
export function wrongTotals(
  sources: readonly SourceDocument[],
  quotes: readonly QuoteDocument[],
): string[] {
  const bySource = Map.groupBy(quotes, (quote) => quote.sourceId)
  const wrong = sources.flatMap(({ _id, externalId, wordCount, quoteCount }) => {
    const own = bySource.get(_id) ?? []
    bySource.delete(_id)
    const words = own.reduce((sum, quote) => sum + quote.wordCount, 0)
    if (wordCount === words && quoteCount === own.length) return []
    return [
      `${externalId}: ${wordCount} words in ${quoteCount} quotes, but its quotes give ${words} in ${own.length}`,
    ]
  })
  return [...wrong, ...Array.from(bySource.keys(), (id) => `quotes without the source ${id}`)]
}

/** The sources whose title is none of those that may stand at the end. */
function outdated(possible: readonly Posted[], sources: readonly SourceDocument[]): string[] {
  const byThread = Map.groupBy(possible, ({ externalId }) => externalId)
  return sources.flatMap(({ externalId, title }) => {
    const requests = byThread.get(externalId)
    if (requests === undefined || lastOnes(requests).some((request) => request.title === title))
      return []
    return [`${externalId}: ${title}`]
  })
}

/** The requests that may be the last accepted one: no accepted request began after their answer. */
function lastOnes(requests: readonly Posted[]): Posted[] {
  const accepted = requests.filter((request) => fateOf(request) === 'accepted')
  const lastBegin = Math.max(...accepted.map(({ sentAt }) => sentAt))
  return requests.filter(({ sentAt, ms, status }) => status === 'none' || sentAt + ms >= lastBegin)
}

function repeatsIn(names: readonly string[]): string[] {
  const seen = new Set<string>()
  return names.filter((name) => seen.size === seen.add(name).size)
}

function storedNames(
  sources: readonly SourceDocument[],
  quotes: readonly QuoteDocument[],
): string[] {
  const names = new Map(sources.map(({ _id, externalId }) => [_id, externalId]))
  return [
    ...names.values(),
    ...quotes.map(({ sourceId, externalId }) => `${names.get(sourceId)}/${externalId}`),
  ]
}

function namesOf({ externalId, quotes }: Posted): string[] {
  return [externalId, ...quotes.map((quote) => `${externalId}/${quote}`)]
}
