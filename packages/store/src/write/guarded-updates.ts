// Updates of documents that were stored before. An update takes effect only if no other process wrote the document since
// it was read.
import type { Document, ObjectId } from 'mongodb'
import type { OpenThread, QuoteDocument, SourceDocument, ThreadRound, WriterToken } from '../documents.ts'
import type { StoreCommands, UpdateStatement } from '../mongodb/commands.ts'

export interface GuardedUpdate extends UpdateStatement {
  q: { _id: string; 'meta.version': ObjectId }
}

/** Makes the update of a document that was read with this version. */
export function guardedUpdate(
  { _id, meta }: Pick<SourceDocument | QuoteDocument, '_id' | 'meta'>,
  u: Document,
): GuardedUpdate {
  return { q: { _id, 'meta.version': meta.version }, u }
}

type Opening = Omit<OpenThread, 'round'> & { write?: GuardedUpdate }

/**
 * Plans the opening of a stored source: reserves it, updates it, or leaves it as it is.
 *
 * @param after the source as it is to be stored.
 */
export function planStored(round: ThreadRound, before: SourceDocument, after: SourceDocument, toSum: boolean): Opening {
  const { version, tokens = [] } = after.meta
  if (toSum || isCoverBesideQuotes(round, before))
    return { isFinal: false, ...planReservation(before, tokens, version) }
  if (needsNoWrite(round)) return { isFinal: true, source: before }
  return { isFinal: true, source: after, write: guardedUpdate(before, after) }
}

/** A new cover must not be stored before the changed quotes: their old values would get a later stamp than theirs. */
function isCoverBesideQuotes({ plan }: ThreadRound, stored: SourceDocument): boolean {
  return plan.source.document.meta.cover !== stored.meta.cover && plan.quoteWrites.length > 0
}

/** Writes the source as it was, with these tokens. This refuses the writes of processes that read the source before. */
export function planReservation(
  stored: SourceDocument,
  tokens: WriterToken[],
  version: ObjectId,
): { source: SourceDocument; write: GuardedUpdate } {
  const source = { ...stored, meta: { ...stored.meta, version, tokens } }
  const update = { $set: { 'meta.version': version, 'meta.tokens': tokens } }
  return { source, write: guardedUpdate(stored, update) }
}

/** Returns whether a stored thread is already as the requests make it. */
export function needsNoWrite({ plan: { source, quoteWrites } }: ThreadRound): boolean {
  return quoteWrites.length === 0 && !source.advanced && !source.changed
}

/** Sends updates in one command, and returns the ids of the documents that do not have the new version afterwards. */
export async function sendUpdates(
  commands: StoreCommands,
  name: 'sources' | 'quotes',
  updates: readonly GuardedUpdate[],
  version: ObjectId,
): Promise<string[]> {
  const { n } = await commands.update(name, updates)
  if (n === updates.length) return []
  const ids = updates.map(({ q }) => q._id)
  const versions = await commands.findVersions(name, ids)
  const written = new Set(versions.filter(({ meta }) => meta.version.equals(version)).map(({ _id }) => _id))
  return ids.filter((id) => !written.has(id))
}
