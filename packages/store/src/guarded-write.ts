import { type Collection, type Document, MongoBulkWriteError, type ObjectId } from 'mongodb'
import { findByIds } from './find-by-ids.ts'

/** What guarded writes need to know of a document; the rest is the caller's. */
export interface GuardedDocument extends Document {
  _id: string
  meta: { version: ObjectId }
}

/** A write of one document that takes only where the document is absent (`insert`), or still is as it was read. */
export type GuardedWrite =
  | { insert: GuardedDocument }
  | { id: string; read: ObjectId; replace: GuardedDocument }
  | { id: string; read: ObjectId; update: { $set: Document; $unset?: Document } }

const DUPLICATE_KEY = 11_000
/** Serialising is synchronous, and a server may hold a collection for a whole command: so many documents at a time let others in between. */
const WRITES_A_COMMAND = 250

/**
 * Writes all that its guards let through and gives the ids of the documents that they refused: somebody else was there first. Each write must
 * set `meta.version` to `version`, which no other write ever sets.
 *
 * @param mayWrite asked before each command; throws where nothing more may be written.
 * @throws the driver's error where the server refuses a write for another reason.
 */
export async function writeGuarded(
  collection: Collection<GuardedDocument>,
  writes: GuardedWrite[],
  version: ObjectId,
  mayWrite: () => void = () => {},
): Promise<Set<string>> {
  const refused = new Set<string>()
  for (let start = 0; start < writes.length; start += WRITES_A_COMMAND) {
    mayWrite()
    for (const id of await writeSome(collection, writes.slice(start, start + WRITES_A_COMMAND), version))
      refused.add(id)
  }
  return refused
}

async function writeSome(
  collection: Collection<GuardedDocument>,
  writes: GuardedWrite[],
  version: ObjectId,
): Promise<string[]> {
  const guarded = writes.flatMap((write) => ('id' in write ? [write.id] : []))
  const { refused, matched } = await run(collection, writes)
  if (matched === guarded.length) return refused
  return [...refused, ...(await findOthers(collection, guarded, version))]
}

async function run(collection: Collection<GuardedDocument>, writes: GuardedWrite[]) {
  try {
    const result = await collection.bulkWrite(writes.map(operationOf), { ordered: false })
    return { refused: [], matched: result.matchedCount }
  } catch (error) {
    if (!(error instanceof MongoBulkWriteError)) throw error
    const errors = [error.writeErrors].flat()
    const refused = errors.flatMap(({ code, index }) => {
      const write = writes[index]
      return code === DUPLICATE_KEY && write !== undefined && 'insert' in write ? [write.insert._id] : []
    })
    if (refused.length < errors.length || error.result.getWriteConcernError() !== undefined) throw error
    return { refused, matched: error.matchedCount }
  }
}

function operationOf(write: GuardedWrite) {
  if ('insert' in write) return { insertOne: { document: write.insert } }
  const filter = { _id: write.id, 'meta.version': write.read }
  if ('replace' in write) return { replaceOne: { filter, replacement: write.replace } }
  return { updateOne: { filter, update: write.update } }
}

/** Those documents whose last write is not this one. */
async function findOthers(
  collection: Collection<GuardedDocument>,
  ids: string[],
  version: ObjectId,
): Promise<string[]> {
  const others = new Set(ids)
  const projection = { 'meta.version': 1 }
  const written = await findByIds(ids, (some, options) =>
    collection.find({ _id: { $in: some } }, { ...options, projection }).toArray(),
  )
  for (const document of written) if (document.meta.version.equals(version)) others.delete(document._id)
  return [...others]
}
