// Updates of stored documents. An update takes effect only if no other process wrote the document since it was read.
import { isDeepStrictEqual } from 'node:util'
import type { ObjectId } from 'mongodb'
import type { GuardedWrite, OpenThread, SourceDocument, ThreadRound, WriterToken } from '../documents.ts'
import type { StoreCommands, UpdateStatement } from '../mongodb/commands.ts'

type Opening = Pick<OpenThread, 'isFinal' | 'source'> & { write?: GuardedWrite<SourceDocument> }

/** Plans the opening of a stored source: reserves it, updates it to be `after`, or leaves it as it is. */
export function planStored(round: ThreadRound, before: SourceDocument, after: SourceDocument, toSum: boolean): Opening {
  const { version, tokens = [], stamp, cover } = after.meta
  if (toSum || isCoverBesideQuotes(round, before)) {
    const write = planMarks(before, { version, tokens })
    return { isFinal: false, source: write.document, write }
  }
  if (needsNoWrite(round)) return { isFinal: true, source: before }
  // A repeat changes only stamps. Then only the stamps are written, so that `joinUpdates` can join the updates of many
  // sources.
  const restamped = planMarks(before, { version, stamp, ...(cover !== undefined && { cover }) })
  const write = isDeepStrictEqual(restamped.document, after) ? restamped : { stored: before, document: after }
  return { isFinal: true, source: after, write }
}

/** Returns whether a new cover must wait for the quotes: stored first, it would give their old values a later stamp. */
function isCoverBesideQuotes({ plan }: ThreadRound, stored: SourceDocument): boolean {
  return plan.source.document.meta.cover !== stored.meta.cover && plan.quoteWrites.length > 0
}

/** Returns whether a stored thread is already as the requests make it. */
export function needsNoWrite({ plan: { source, quoteWrites } }: ThreadRound): boolean {
  return quoteWrites.length === 0 && !source.advanced
}

/** Plans an update of only these marks. A new version refuses writes by processes that read the source before. */
export function planMarks(
  stored: SourceDocument,
  marks: { version: ObjectId; tokens?: WriterToken[]; epoch?: ObjectId; stamp?: number; cover?: number },
): GuardedWrite<SourceDocument> {
  const $set = Object.fromEntries(Object.entries(marks).map(([name, value]) => [`meta.${name}`, value]))
  return { stored, document: { ...stored, meta: { ...stored.meta, ...marks } }, u: { $set } }
}

/**
 * Sends updates, which must be sorted by their ids. Returns the ids of the documents that do not have the new version
 * afterwards. Each joined update is a command of its own: its documents lie between those of the others, and a command
 * must lock its documents in the order of their ids.
 */
export async function sendUpdates(
  commands: StoreCommands,
  name: 'sources' | 'quotes',
  writes: readonly GuardedWrite[],
  version: ObjectId,
): Promise<string[]> {
  const updates = writes.map(({ stored, document, u = document }) => {
    return { q: { _id: document._id, 'meta.version': stored?.meta.version }, u }
  })
  const joined = joinUpdates(updates)
  const ofMany = joined.filter(({ multi }) => multi)
  let n = 0
  for (const some of [joined.filter(({ multi }) => !multi), ...ofMany.map((one) => [one])])
    if (some.length > 0) n += (await commands.update(name, some)).n
  if (n === updates.length) return []
  const ids = writes.map(({ document }) => document._id)
  const versions = await commands.findVersions(name, ids)
  const written = new Set(versions.filter(({ meta }) => meta.version.equals(version)).map(({ _id }) => _id))
  return ids.filter((id) => !written.has(id))
}

/** Joins updates that set the same values in documents of the same version: that costs less. */
function joinUpdates(updates: readonly UpdateStatement[]): UpdateStatement[] {
  const alike = Map.groupBy(updates, ({ q: { _id, ...guard }, u }) => (u.$set ? JSON.stringify([guard, u]) : _id))
  return Array.from(alike.values()).flatMap((some) => {
    const [first, ...others] = some
    if (first === undefined || others.length === 0) return some
    return [{ q: { ...first.q, _id: { $in: some.map(({ q }) => q._id) } }, u: first.u, multi: true }]
  })
}
