// Deletes sources: marks each source with the deletion, then removes its quotes in a sum.
import { deletedBy, pickDeleted, seenQuote, withoutDeleted } from '../deletions.ts'
import {
  DELETIONS_MS,
  type DeletedAnswer,
  type DeleteRequest,
  type DeletionMark,
  type GuardedWrite,
  isLive,
  MOST_SINGLE,
  type QuoteWithoutText,
  type SourceMarks,
  type SourceOrTombstone,
} from '../documents.ts'
import { hashTuple, inSource } from '../ids.ts'
import { REPLACED } from '../merge/merge.ts'
import { RefusedWriteError } from '../mongodb/commands.ts'
import { writeGuarded } from './guarded-writes.ts'
import { NO_QUOTES, type SumDeps, sumSources } from './sum-sources.ts'

/** MongoDB's BSONObjectTooLarge: the document would grow too large. */
const TOO_LARGE = 10_334

const ABSENT: DeletedAnswer = { outcome: 'absent', quotes: 0 }

const answerOf = ({ quotes }: Pick<DeletionMark, 'quotes'>): DeletedAnswer =>
  quotes === undefined ? ABSENT : { outcome: 'deleted', quotes }

/**
 * Deletes sources, and returns answers by request id. A request gets no answer while another
 * process writes its source, or while quotes are left to remove: store it again.
 */
export async function deleteSources(
  deps: SumDeps,
  requests: readonly DeleteRequest[],
): Promise<Map<string, DeletedAnswer>> {
  const { commands, watermarks } = deps
  const answers = new Map<string, DeletedAnswer>()
  const bySource = Map.groupBy(requests, ({ deletes }) => deletes.sourceId)
  const found = await commands.find('sources', [...bySource.keys()])
  const sources = new Map(found.map((source) => [source._id, source]))
  const known = (request: DeleteRequest) =>
    knownAnswer(request, sources.get(request.deletes.sourceId))
  // An answer without a write must not depend on a source that can be rolled back.
  const toConfirm = [...bySource].flatMap(([id, some]) => (some.some(known) ? [id] : []))
  for (const id of toConfirm) sources.delete(id)
  for (const source of await commands.find('sources', toConfirm, 'majority'))
    sources.set(source._id, source)

  for (const request of requests) {
    const answer = known(request)
    if (answer !== undefined) answers.set(request.id, answer)
  }
  const groups = Array.from(bySource, ([id, some]) => {
    const open = some.filter((request) => !answers.has(request.id))
    return markedTogether(open, sources.get(id))
  })
  await watermarks.read([...sources.values()].flatMap(({ meta }) => meta.tokens ?? []))
  return new Map([...answers, ...(await markAndRemove(deps, groups, sources))])
}

/**
 * Returns the deletions of a source that one mark can record: the newest one, then deletions of
 * single quotes. The others wait for a later call, because a mark has one cover, which counts for
 * the newest deletion.
 */
function markedTogether(
  some: readonly DeleteRequest[],
  source: SourceOrTombstone | undefined,
): DeleteRequest[] {
  const { cover = 0, deletion } = source?.meta ?? {}
  const [newest, ...others] = some.toSorted((one, other) => other.stamp - one.stamp)
  if (newest === undefined) return []
  if (!newest.deletes.quoteIds || deletion?.before) return [newest]
  const canShare = ({ tenant, stamp, deletes }: DeleteRequest) =>
    deletes.quoteIds && tenant === newest.tenant && stamp > cover
  return [newest, ...others.filter(canShare)]
}

/** Returns the answer to a deletion that has ended, or that has nothing to delete. */
function knownAnswer(
  { id, tenant, stamp, deletes }: DeleteRequest,
  source: SourceOrTombstone | undefined,
): DeletedAnswer | undefined {
  if (source === undefined) return undefined
  const { deletion } = source.meta
  if (isLive(source) && source.tenant !== tenant) return ABSENT
  if (deletion?.before) return undefined
  if (deletion?.request === id) return answerOf(deletion)
  if (deletes.until !== undefined && isLive(source) && source.meta.stamp > stamp) return ABSENT
  const deleted = deletedBy(tenant, source)
  if (deleted.stamp >= stamp) return ABSENT
  const isOlder = (quoteId: string) => (deleted.ofQuotes?.[inSource(quoteId)] ?? 0) >= stamp
  return deletes.quoteIds?.every(isOlder)
    ? { outcome: 'deleted', quotes: deletes.quoteIds.length }
    : undefined
}

/** Marks the source of each group, then removes its quotes. Returns answers by request id. */
async function markAndRemove(
  deps: SumDeps,
  groups: readonly DeleteRequest[][],
  sources: ReadonlyMap<string, SourceOrTombstone>,
): Promise<Map<string, DeletedAnswer>> {
  const { commands, runtime, watermarks, isExcluded } = deps
  const single = groups.flatMap((group) => group.flatMap(({ deletes }) => deletes.quoteIds ?? []))
  const found = await commands.findWithoutTexts([...new Set(single)])
  const quotes = new Map(found.map((quote) => [quote._id, quote]))
  const version = runtime.newId()
  const writer = runtime.newId().toHexString()
  const since = new Date(runtime.now())
  const writes: GuardedWrite<SourceOrTombstone>[] = []
  /** The answers to a group's further requests, by the id of its first, which the mark names. */
  const answersWith = new Map<string, [string, DeletedAnswer][]>()
  for (const [request, ...others] of groups) {
    if (request === undefined) continue
    const { id, deletes } = request
    const found = sources.get(deletes.sourceId)
    if (found && isExcluded(found, (token) => token.request === id)) continue
    const stored = found && watermarks.withoutSettledTokens(found)
    const source = stored ?? { _id: deletes.sourceId, ...NO_QUOTES, meta: { version } }
    const { deletion: last, tokens = [] } = source.meta
    // If another deletion has not ended, this call only ends it.
    const ends = last?.before ? last.request : id
    const document =
      ends === id ? withoutDeleted(source, markOf(request, others, source, quotes)) : source
    const own = { request: ends, writer, batch: 1, since, excludes: runtime.newId() }
    const open = [...tokens.filter((token) => token.request !== ends), own]
    const meta = {
      ...document.meta,
      version,
      ...(document.meta.deletion?.before && { tokens: open }),
    }
    writes.push({ ...(stored && { stored }), document: { ...document, meta } })
    answersWith.set(
      id,
      others.map((one) => [one.id, answerOf(removedBy(one, quotes, source, document))]),
    )
  }
  const refused = await writeGuarded(commands, 'sources', writes, version)
  const marked = writes.flatMap(({ document }) => (refused.has(document._id) ? [] : [document]))
  const ended = await sumSources(
    deps,
    marked.filter(({ meta }) => meta.deletion?.before),
    (token) => token.writer === writer,
    async (some) => some.map((stored) => ({ stored, document: stored })),
  )
  const done = [...marked, ...ended].flatMap(({ meta: { deletion } }) =>
    deletion === undefined || deletion.before
      ? []
      : [[deletion.request, answerOf(deletion)] as const],
  )
  return new Map(done.flatMap((one) => [one, ...(answersWith.get(one[0]) ?? [])]))
}

/** Counts the quotes that a deletion of single quotes removes: seen before, and not after. */
function removedBy(
  { deletes: { quoteIds = [] } }: DeleteRequest,
  quotes: ReadonlyMap<string, QuoteWithoutText>,
  before: { meta: SourceMarks },
  after: { meta: SourceMarks },
): Pick<DeletionMark, 'quotes'> {
  const isSeen = (quote: QuoteWithoutText, by: { meta: SourceMarks }) =>
    seenQuote({ ...quote, text: REPLACED }, by) !== undefined
  const removed = quoteIds.filter((id) => {
    const quote = quotes.get(id)
    return quote && isSeen(quote, before) && !isSeen(quote, after)
  })
  return removed.length > 0 ? { quotes: removed.length } : {}
}

/**
 * Makes the mark of a deletion, and of the deletions of single quotes (`more`) that share it.
 * `quotes`: the stored quotes that these name.
 */
function markOf(
  request: DeleteRequest,
  more: readonly DeleteRequest[],
  source: SourceOrTombstone,
  quotes: ReadonlyMap<string, QuoteWithoutText>,
): DeletionMark {
  const { id, tenant, stamp, deletes } = request
  const { deletion: last, tokens, cover = 0 } = source.meta
  const own = deletedBy(tenant, source)
  const upTo = deletes.quoteIds ? own.stamp : stamp
  const isKept = (at: number) => at > Math.max(upTo, stamp - DELETIONS_MS * 1_000)
  const single = new Map(Object.entries(own.ofQuotes ?? {}).filter(([, at]) => isKept(at)))
  for (const { stamp, deletes } of [request, ...more])
    for (const name of (deletes.quoteIds ?? []).map(inSource))
      single.set(name, Math.max(stamp, single.get(name) ?? 0))
  if (deletes.quoteIds && single.size > MOST_SINGLE) {
    const errmsg = `more than ${MOST_SINGLE} quotes of this thread would be deleted one by one within 31 days`
    throw new RefusedWriteError({ code: TOO_LARGE, errmsg }, 'sources', source._id)
  }
  const others =
    last && last.tenant !== tenant
      ? { ...last.others, [hashTuple(last.tenant)]: pickDeleted(last) }
      : last?.others
  const mark = {
    ...{ stamp: upTo, tenant, request: id },
    ...(single.size > 0 && { ofQuotes: Object.fromEntries(single) }),
    ...(others && { others }),
  }
  // A tombstone without tokens has no quotes to remove.
  if (!isLive(source) && tokens === undefined) return mark
  const end = { stamp, ...(cover > stamp && { cover }) }
  if (last?.request === id) return { ...last, before: { ...last.before, ...end } }
  if (!deletes.quoteIds)
    return { ...mark, before: { ...end, ...(isLive(source) && { quotes: source.quoteCount }) } }
  const after = { meta: { cover, deletion: { ...mark, before: end } } }
  return { ...mark, before: end, ...removedBy(request, quotes, source, after) }
}
