// Deletes sources: marks each source with the deletion, then removes its quotes in a sum.
import {
  type DeletedAnswer,
  type DeleteRequest,
  type DeletionMark,
  type GuardedWrite,
  isLive,
  type SourceOrTombstone,
} from '../documents.ts'
import { hashTuple } from '../ids.ts'
import { deletedBy, withoutDeleted } from '../merge/deletions.ts'
import { writeGuarded } from './guarded-writes.ts'
import { NO_QUOTES, type SumDeps, sumSources } from './sum-sources.ts'

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

  // The newest deletion of a source leaves nothing to the others.
  for (const { id, tenant, deletes } of requests) {
    const last = newest.get(deletes.sourceId)
    if (last?.tenant === tenant && last.id !== id && answers.has(last.id)) answers.set(id, ABSENT)
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
  return deletedBy(tenant, source) >= stamp ? ABSENT : undefined
}

/** Marks these sources, then removes their quotes. */
async function markAndRemove(
  deps: SumDeps,
  requests: readonly DeleteRequest[],
  sources: ReadonlyMap<string, SourceOrTombstone>,
): Promise<Map<string, DeletedAnswer>> {
  const { commands, runtime, watermarks, isExcluded } = deps
  const version = runtime.newId()
  const writer = runtime.newId().toHexString()
  const since = new Date(runtime.now())
  const writes: GuardedWrite<SourceOrTombstone>[] = []
  for (const { id, tenant, stamp, deletes } of requests) {
    const found = sources.get(deletes.sourceId)
    if (found && isExcluded(found, ({ request }) => request === id)) continue
    const stored = found && watermarks.withoutSettledTokens(found)
    const { deletion: last, tokens = [], cover = 0 } = stored?.meta ?? {}
    const isOwn = last?.tenant === tenant
    const count = stored && isLive(stored) ? stored.quoteCount : undefined
    const quotes = isOwn && last.before ? last.before.quotes : count
    const others =
      isOwn || !last ? last?.others : { ...last.others, [hashTuple(last.tenant)]: last.stamp }
    // A tombstone without tokens has no quotes to remove.
    const isEmpty = count === undefined && tokens.length === 0
    const before = {
      ...(quotes !== undefined && { quotes }),
      ...(cover > stamp && { cover }),
    }
    const document = withoutDeleted(
      stored ?? { _id: deletes.sourceId, ...NO_QUOTES, meta: { version } },
      {
        ...{ stamp, tenant, request: id },
        ...(!isEmpty && { before }),
        ...(others && { others }),
      },
    )
    const own = { request: id, writer, batch: 1, since, excludes: runtime.newId() }
    const open = tokens.filter(({ request }) => request !== id && request !== last?.request)
    const meta = { ...document.meta, version, ...(!isEmpty && { tokens: [...open, own] }) }
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
