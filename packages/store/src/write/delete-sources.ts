// Deletes sources: marks each source with the deletion, then removes its quotes in a sum.

import { deletedBy, pickDeleted, seenQuote, withoutDeleted } from '../deletions.ts'
import {
  DELETIONS_MS,
  type DeletedAnswer,
  type DeleteRequest,
  type DeletionMark,
  type GuardedWrite,
  isLive,
  type QuoteWithoutText,
  type SourceMarks,
  type SourceOrTombstone,
} from '../documents.ts'
import { hashTuple, inSource } from '../ids.ts'
import { REPLACED } from '../merge/merge.ts'
import { RefusedWriteError } from '../mongodb/commands.ts'
import { writeGuarded } from './guarded-writes.ts'
import { NO_QUOTES, type SumDeps, sumSources } from './sum-sources.ts'

/**
 * The most single quotes of a source that it remembers as deleted. Each takes 34 bytes of it, and a
 * condition of each sum and page of its quotes.
 */
const MOST_SINGLE = 10_000
/** MongoDB's BSONObjectTooLarge: the document would grow too large. */
const TOO_LARGE = 10_334

const ABSENT: DeletedAnswer = { outcome: 'absent', quotes: 0 }

const answerOf = ({ quotes }: DeletionMark): DeletedAnswer =>
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
  const newest = new Map<string, DeleteRequest>()
  for (const request of requests.toSorted((one, other) => one.stamp - other.stamp))
    newest.set(request.deletes.sourceId, request)

  const found = await commands.find('sources', [...newest.keys()])
  const sources = new Map(found.map((source) => [source._id, source]))
  const known = (request: DeleteRequest) =>
    knownAnswer(request, sources.get(request.deletes.sourceId))
  // An answer without a write must not depend on a source that can be rolled back.
  const toConfirm = [...newest].flatMap(([id, request]) => (known(request) ? [id] : []))
  for (const id of toConfirm) sources.delete(id)
  for (const source of await commands.find('sources', toConfirm, 'majority'))
    sources.set(source._id, source)

  const toMark: DeleteRequest[] = []
  for (const request of newest.values()) {
    const answer = known(request)
    if (answer === undefined) toMark.push(request)
    else answers.set(request.id, answer)
  }
  await watermarks.read([...sources.values()].flatMap(({ meta }) => meta.tokens ?? []))
  for (const [id, answer] of await markAndRemove(deps, toMark, sources)) answers.set(id, answer)

  // The newest deletion of a whole source leaves nothing to the others.
  for (const { id, tenant, deletes } of requests) {
    const last = newest.get(deletes.sourceId)
    if (last?.tenant !== tenant || last.deletes.quoteIds || last.id === id) continue
    if (answers.has(last.id)) answers.set(id, ABSENT)
  }
  return answers
}

/** Returns the answer to a deletion that has ended, or that has nothing to delete. */
function knownAnswer(
  { id, tenant, stamp, deletes }: DeleteRequest,
  source: SourceOrTombstone | undefined,
): DeletedAnswer | undefined {
  if (source === undefined) return undefined
  const { deletion } = source.meta
  if (isLive(source) && source.tenant !== tenant) return ABSENT
  if (deletion?.request === id) return deletion.before ? undefined : answerOf(deletion)
  if (deletes.until !== undefined && isLive(source) && source.meta.stamp > stamp) return ABSENT
  const deleted = deletedBy(tenant, source)
  if (deleted.stamp >= stamp) return ABSENT
  const isOlder = (quoteId: string) => (deleted.ofQuotes?.[inSource(quoteId)] ?? 0) >= stamp
  return deletes.quoteIds?.every(isOlder)
    ? { outcome: 'deleted', quotes: deletes.quoteIds.length }
    : undefined
}

/** Marks these sources, then removes their quotes. */
async function markAndRemove(
  deps: SumDeps,
  requests: readonly DeleteRequest[],
  sources: ReadonlyMap<string, SourceOrTombstone>,
): Promise<Map<string, DeletedAnswer>> {
  const { commands, runtime, watermarks, isExcluded } = deps
  const single = requests.flatMap(({ deletes }) => deletes.quoteIds ?? [])
  const quotes = await commands.findWithoutTexts(single)
  const version = runtime.newId()
  const writer = runtime.newId().toHexString()
  const since = new Date(runtime.now())
  const writes: GuardedWrite<SourceOrTombstone>[] = []
  for (const request of requests) {
    const { id, deletes } = request
    const found = sources.get(deletes.sourceId)
    if (found && isExcluded(found, (token) => token.request === id)) continue
    const stored = found && watermarks.withoutSettledTokens(found)
    const source = stored ?? { _id: deletes.sourceId, ...NO_QUOTES, meta: { version } }
    const { deletion: last, tokens = [] } = source.meta
    // If another deletion has not ended, this call only ends it.
    const document =
      last?.before && last.request !== id
        ? source
        : withoutDeleted(source, markOf(request, source, quotes))
    const own = { request: id, writer, batch: 1, since, excludes: runtime.newId() }
    const open = [...tokens.filter((token) => token.request !== id), own]
    const meta = {
      ...document.meta,
      version,
      ...(document.meta.deletion?.before && { tokens: open }),
    }
    writes.push({ ...(stored && { stored }), document: { ...document, meta } })
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
  return new Map(done)
}

/** Makes the mark of a deletion. `quotes`: those that it names and that are stored. */
function markOf(
  { id, tenant, stamp, deletes: { quoteIds } }: DeleteRequest,
  source: SourceOrTombstone,
  quotes: readonly QuoteWithoutText[],
): DeletionMark {
  const { deletion: last, tokens, cover = 0 } = source.meta
  const own = deletedBy(tenant, source)
  const upTo = quoteIds ? own.stamp : stamp
  const names = (quoteIds ?? []).map(inSource)
  const single = Object.entries({
    ...own.ofQuotes,
    ...Object.fromEntries(names.map((name) => [name, Math.max(stamp, own.ofQuotes?.[name] ?? 0)])),
  }).filter(([, at]) => at > Math.max(upTo, stamp - DELETIONS_MS * 1_000))
  if (quoteIds && single.length > MOST_SINGLE) {
    const errmsg = `more than ${MOST_SINGLE} quotes of this thread would be deleted one by one within 31 days`
    throw new RefusedWriteError({ code: TOO_LARGE, errmsg }, 'sources', source._id)
  }
  const others =
    last && last.tenant !== tenant
      ? { ...last.others, [hashTuple(last.tenant)]: pickDeleted(last) }
      : last?.others
  const mark = {
    ...{ stamp: upTo, tenant, request: id },
    ...(single.length > 0 && { ofQuotes: Object.fromEntries(single) }),
    ...(others && { others }),
  }
  // A tombstone without tokens has no quotes to remove.
  if (!isLive(source) && tokens === undefined) return mark
  const end = { stamp, ...(cover > stamp && { cover }) }
  if (last?.request === id) return { ...last, before: { ...last.before, ...end } }
  if (!quoteIds)
    return { ...mark, before: { ...end, ...(isLive(source) && { quotes: source.quoteCount }) } }
  const marked = { meta: { cover, deletion: { ...mark, before: end } } }
  const isSeen = (quote: QuoteWithoutText, by: { meta: SourceMarks }) =>
    seenQuote({ ...quote, text: REPLACED }, by) !== undefined
  const count = quotes.filter(
    (quote) => quoteIds.includes(quote._id) && isSeen(quote, source) && !isSeen(quote, marked),
  ).length
  return { ...mark, before: end, ...(count > 0 && { quotes: count }) }
}
